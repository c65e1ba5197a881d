import { type BrowserSession, type LogEntry, Pilothouse } from "../../../../sdk/typescript/src/index.ts";
import { sleep } from "../../../../src/platform/bounded-wait.ts";
import { type LoadRun, reported } from "./run.ts";

/** Milliseconds between the commands of a session. */
const pause = 1_000;

/** Returns a client that repeats requests by the rules of the SDK, and counts these repeats. */
export function clientOf(run: LoadRun): Pilothouse {
  const log = ({ retryInMs }: LogEntry) => {
    if (retryInMs !== undefined) run.counts.repeats += 1;
  };
  return new Pilothouse({ baseUrl: run.url, apiKey: run.key, log });
}

/** Drives a session and follows its events until the load ends. Then the session ends, which its events must show. */
export async function driveSession(run: LoadRun, client: Pilothouse, session: BrowserSession): Promise<void> {
  const { id } = session;
  const followed = reported(run, `events of ${id}`, followEvents(run, session));
  while (!run.over.aborted) {
    run.counts.commands += 1;
    await reported(
      run,
      `command of ${id}`,
      session.goto("about:blank").then(() => undefined),
    );
    await sleep(pause, run.over);
  }
  const { status, ended_reason: reason } = (await client.sessions.get(id)).data;
  if (status !== "live") run.failures.push(`session ${id}: ${status} ${reason}`);
  await session.end();
  await followed;
}

async function followEvents(run: LoadRun, session: BrowserSession): Promise<void> {
  let last = "no event";
  for await (const { type } of session.events()) {
    run.counts.events += 1;
    last = type;
  }
  if (last !== "session.completed") throw new Error(`expected session.completed at the end, got ${last}`);
}
