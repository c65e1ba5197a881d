import pg from "pg";
import type { Deployment } from "../support/deployment.ts";

/** State of all sessions in the database after a storm. */
export interface Books {
  readonly faults: readonly string[];
  readonly endings: ReadonlyMap<string, number>;
}

interface SessionEntry {
  readonly id: string;
  readonly status: string;
  readonly ended_reason: string | null;
  readonly slot_held: boolean;
  readonly was_live: boolean;
  readonly types: readonly string[];
}

/** Reads every session with its events. `known` has the ids that clients received. */
export async function readBooks({ postgres }: Deployment, known: ReadonlySet<string>): Promise<Books> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    const { rows } = await client.query<SessionEntry>(
      `select s.id, s.status, s.ended_reason, s.slot_held, s.live_at is not null as was_live,
         coalesce((select array_agg(e.type order by e.position) from events e where e.subject = s.id), '{}') as types
       from sessions s order by s.id`,
    );
    const listed = new Set(rows.map(({ id }) => id));
    const lost = [...known].filter((id) => !listed.has(id)).map((id) => `${id} was answered and is not recorded`);
    const endings = new Map<string, number>();
    for (const { ended_reason: reason } of rows)
      endings.set(reason ?? "none", (endings.get(reason ?? "none") ?? 0) + 1);
    return { faults: [...lost, ...rows.flatMap(faultsOf)], endings };
  } finally {
    await client.end();
  }
}

function faultsOf({ id, status, slot_held: holdsSlot, was_live: wasLive, types }: SessionEntry): string[] {
  const terminal = { destroyed: "session.completed", errored: "session.failed" }[status];
  if (terminal === undefined) return [`${id} is still ${status}`];
  const wanted = ["session.created", ...(wasLive ? ["session.live"] : []), terminal];
  return [
    ...(types.join() === wanted.join() ? [] : [`${id} is ${status} with the events ${types}`]),
    ...(holdsSlot ? [`${id} has ended and holds a slot`] : []),
  ];
}
