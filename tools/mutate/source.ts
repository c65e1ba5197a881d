import { parseSync } from "@swc/core";

/** A byte range of a source; `end` is exclusive. */
export interface SourceRange {
  readonly start: number;
  readonly end: number;
}

/** A constant with a duration. The name of a nested property is its path: `times.look.first`. */
export interface DurationConstant extends SourceRange {
  readonly name: string;
  /** Initializer expression. */
  readonly value: string;
}

/** A node of the syntax tree. */
export interface SyntaxNode extends SourceRange {
  readonly type: string;
  /** Returns a child by the name of its property in swc. */
  child(name: string): SyntaxNode | undefined;
  /** Returns the children of a list property; [] if there is no list. */
  children(name: string): readonly SyntaxNode[];
  /** Returns the text value of a node, such as the name of an identifier. */
  readonly value: string;
}

function toNode(from: unknown): SyntaxNode | undefined {
  if (typeof from !== "object" || from === null) return undefined;
  const read = (name: string): unknown => Reflect.get(from, name);
  const type = read("type");
  if (typeof type !== "string") return undefined;
  // Properties have no span.
  const { start, end } = (read("span") ?? { start: 1, end: 1 }) as SourceRange;
  const listed = (name: string): unknown[] => [read(name)].flat();
  return {
    type,
    // swc counts bytes from 1.
    start: start - 1,
    end: end - 1,
    value: String(read("value") ?? ""),
    child: (name) => toNode(read(name)),
    children: (name) => listed(name).flatMap((each) => toNode(each) ?? []),
  };
}

/** Parses a TypeScript source. Returns its top-level statements and all its nodes. */
export function parseSource(text: string): { readonly body: readonly SyntaxNode[]; readonly all: SyntaxNode[] } {
  const module = parseSync(text, { syntax: "typescript" });
  const all: SyntaxNode[] = [];
  const walk = (from: unknown): void => {
    if (typeof from !== "object" || from === null) return;
    const node = toNode(from);
    if (node) all.push(node);
    for (const each of Object.values(from)) walk(each);
  };
  walk(module.body);
  return { body: module.body.flatMap((each) => toNode(each) ?? []), all };
}

/** Returns the text of a range. */
export const textOf = (source: Buffer, { start, end }: SourceRange): string => source.subarray(start, end).toString();

const durationName =
  /^(?=[a-z])(?!(is|set)[A-Z])[\w.]*(Ms|_ms|For|[eE]very|Within|After|Gap|Pause|keptDays|[dD]elays?|[sS]econds|[tT]imeouts?|schedule)$/;
const groupName = /^((life)?times|timeLimits)$/;

/** Conversions between seconds and milliseconds, and values from elsewhere, are not durations of their own. */
const isNumber = ({ type }: SyntaxNode, value: string): boolean =>
  /^(Numeric|Binary|Array)/.test(type) && /[1-9]/.test(value) && !/[*/] 1_000$|\?/.test(value);

/** Unwraps `as const` and `satisfies`. */
function bare(node: SyntaxNode | undefined): SyntaxNode | undefined {
  return node && /^Ts(Const|As|Satisfies)/.test(node.type) ? bare(node.child("expression")) : node;
}

/** Number and unit of SQL intervals. Factors such as `3 * interval '1 hour'` have names of their own. */
export const sqlIntervals = /(?<!\* )interval '(\d+) (\w+)'/g;

/**
 * Returns the durations of a module: by the names of constants and properties, or as members of objects called `times`,
 * `lifetimes` or `timeLimits`. Inside functions, only literal numbers count. SQL intervals are called `sql`.
 */
export function findDurations(text: string): DurationConstant[] {
  const source = Buffer.from(text);
  const found: DurationConstant[] = [];
  const { body, all } = parseSource(text);

  function add(name: string, node: SyntaxNode): void {
    const value = textOf(source, node).replace(/\s+/g, " ");
    found.push({ name, value, start: node.start, end: node.end });
  }

  function read(name: string, given: SyntaxNode | undefined, counts: boolean): void {
    const node = bare(given);
    if (!node || /Arrow|Function/.test(node.type)) return;
    if (node.type === "ObjectExpression") {
      for (const property of node.children("properties")) readProperty(name, property, counts);
    } else if (counts && !/^(String|Boolean|Null)Literal$/.test(node.type)) add(name, node);
  }

  function readProperty(owner: string, property: SyntaxNode, counts: boolean): void {
    if (property.type !== "KeyValueProperty") return;
    const key = property.child("key")?.value ?? "";
    read(`${owner}.${key}`, property.child("value"), counts || durationName.test(key));
  }

  for (const statement of body) {
    const declaration = statement.type === "ExportDeclaration" ? statement.child("declaration") : statement;
    for (const { child } of declaration?.children("declarations") ?? []) {
      const name = child("id")?.value ?? "";
      read(name, child("init"), durationName.test(name) || groupName.test(name));
    }
  }
  const isKnown = (at: number) => found.some(({ start, end }) => start <= at && at < end);
  for (const { 0: value, index } of text.matchAll(sqlIntervals)) {
    const start = Buffer.byteLength(text.slice(0, index));
    if (!isKnown(start)) found.push({ name: "sql", value, start, end: start + Buffer.byteLength(value) });
  }
  for (const { child } of all) {
    const name = (child("key") ?? child("id"))?.value ?? "";
    const node = bare(child("value") ?? child("init"));
    if (node && durationName.test(name) && isNumber(node, textOf(source, node)) && !isKnown(node.start))
      add(name, node);
  }
  return found;
}
