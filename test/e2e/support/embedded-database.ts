import { join } from "node:path";
import pg from "pg";
import type { Service } from "../../support/service.ts";

/** Runs one statement. */
export type Query = <Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

/** Connects to the PostgreSQL of a running service as nobody else does, through its unix socket. */
export async function withDatabase<T>(dataDir: string, run: (query: Query) => Promise<T>): Promise<T> {
  const client = new pg.Client({ host: join(dataDir, "postgres", "run"), user: "postgres", database: "postgres" });
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

/** The stored events of a session, in order. */
export function eventsOf({ dataDir }: Service, sessionId: string): Promise<StoredEvent[]> {
  return withDatabase(dataDir, (query) =>
    query("select id, type, data from events where subject = $1 order by position", [sessionId]),
  );
}
