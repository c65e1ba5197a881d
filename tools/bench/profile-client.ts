import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { Rest } from "../../test/support/rest.ts";

/** Milliseconds to wait for a save, including the restart of a worker. */
const savedWithin = 60_000;

/** Creates a profile and returns its id. */
export async function createProfile(rest: Rest): Promise<string> {
  const { status, body } = await rest("/v1/profiles", { name: "bench" });
  if (status !== 201) throw new Error(`failed to create a profile: ${status} ${body.detail}`);
  return body.id;
}

/** Resolves when no session uses a profile and it was saved after the given time. */
export async function awaitSaved(rest: Rest, profile: string, since = new Date(0)): Promise<void> {
  const isSaved = async (): Promise<boolean> => {
    const { body } = await rest(`/v1/profiles/${profile}`);
    return !body.active_session_id && new Date(body.saved_at ?? 0) > since;
  };
  if (!(await waitUntil(isSaved, { timeout: savedWithin, every: 20 }))) throw new Error("a profile was not saved");
}
