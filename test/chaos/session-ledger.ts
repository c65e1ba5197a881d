import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import { connectionOptions } from "../../src/platform/postgres/database-target.ts";
import type { DoomedService } from "./doomed-service.ts";

/** State of a session: its status in the list, and its terminal events. */
export interface LedgerEntry {
  readonly status: string;
  readonly endedReason: string | null;
  readonly terminalEvents: readonly string[];
}

/** Reads every listed session with its terminal events, by id. */
export async function readLedger(doomed: DoomedService): Promise<ReadonlyMap<string, LedgerEntry>> {
  const { dataDir } = doomed.service;
  for (let events = await readTerminalEvents(dataDir); ; ) {
    const entries = await readEntries(doomed, events);
    const after = await readTerminalEvents(dataDir);
    // If a session ended between the reads, its status and its events would disagree.
    if (isDeepStrictEqual(events, after)) return entries;
    events = after;
  }
}

async function readEntries(
  doomed: DoomedService,
  events: ReadonlyMap<string, string[]>,
): Promise<ReadonlyMap<string, LedgerEntry>> {
  const entries = new Map<string, LedgerEntry>();
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body } = await doomed.rest(`/v1/sessions?limit=100${cursor && `&cursor=${cursor}`}`);
    for (const { id, status, ended_reason: endedReason } of body.data) {
      entries.set(id, { status, endedReason, terminalEvents: events.get(id) ?? [] });
    }
    cursor = body.next_cursor;
  }
  return entries;
}

/** Reads the entry of the session at a path. */
export async function entryOf(doomed: DoomedService, session: string): Promise<LedgerEntry | undefined> {
  return (await readLedger(doomed)).get(session.replace("/v1/sessions/", ""));
}

/** Returns violations of the rule that an ended session has one terminal event and a running one has none. */
export function faultsOf(ledger: ReadonlyMap<string, LedgerEntry>, ids: Iterable<string>): string[] {
  const lost = [...ids].filter((id) => !ledger.has(id)).map((id) => `${id} is not listed`);
  const wrong = [...ledger].flatMap(([id, { status, terminalEvents }]) => {
    const wanted = { destroyed: ["session.completed"], errored: ["session.failed"] }[status] ?? [];
    return terminalEvents.join() === wanted.join() ? [] : [`${id} is ${status} with [${terminalEvents}]`];
  });
  return [...lost, ...wrong];
}

async function readTerminalEvents(dataDir: string): Promise<ReadonlyMap<string, string[]>> {
  const client = new pg.Client(
    connectionOptions({ socketDirectory: join(dataDir, "postgres", "run"), user: "postgres" }),
  );
  await client.connect();
  try {
    const { rows } = await client.query<{ subject: string; types: string[] }>(
      `select subject, array_agg(type order by position) as types from events
        where type in ('session.completed', 'session.failed') group by subject`,
    );
    return new Map(rows.map(({ subject, types }) => [subject, types]));
  } finally {
    await client.end();
  }
}
