import pg from "pg";
import type { Service } from "../../support/service.ts";

export type Query = <Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

/** Connects to the database of a running service. */
export async function withDatabase<T>(url: string, run: (query: Query) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await run(async (text, values = []) => (await client.query(text, [...values])).rows);
  } finally {
    await client.end();
  }
}

interface StoredEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Returns the stored events of a session in order. */
export function eventsOf({ databaseUrl }: Pick<Service, "databaseUrl">, sessionId: string): Promise<StoredEvent[]> {
  return withDatabase(databaseUrl, (query) =>
    query("select id, type, data from events where subject = $1 order by position", [sessionId]),
  );
}
