import type { QueryConfig } from "pg";

/** Uses after which a statement is hot, and maximum number of hot statements, which take memory per connection. */
const hot = { from: 10, max: 200 };

/** Maximum number of counted statements. */
const maxCounted = 1_000;

/**
 * Names the statements that run often, so that each connection prepares them once. PostgreSQL parses and plans other
 * statements each time, which takes 0.1 to 0.4 ms.
 */
export class HotStatements {
  readonly #uses = new Map<string, number>();
  readonly #names = new Map<string, string>();

  /** Returns the statement, with a name if it is hot. */
  name(statement: QueryConfig): QueryConfig {
    const { text, name: own, values = [] } = statement;
    // A prepared statement with `*` fails once a migration has added a column.
    if (own !== undefined || values.length === 0 || text.includes("*")) return statement;
    const name = this.#names.get(text) ?? this.#count(text);
    return name === undefined ? statement : { ...statement, name };
  }

  #count(text: string): string | undefined {
    if (this.#names.size >= hot.max) return undefined;
    if (this.#uses.size >= maxCounted) this.#uses.clear();
    const uses = (this.#uses.get(text) ?? 0) + 1;
    this.#uses.set(text, uses);
    if (uses < hot.from) return undefined;
    this.#uses.delete(text);
    const name = `hot-${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}
