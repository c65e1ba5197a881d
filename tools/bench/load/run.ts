import type { LoadScene } from "./load-scene.ts";
import { type SessionKind, UnexpectedAnswer } from "./session-kinds.ts";

/** Unexpected outcomes of sessions: their number by error slug, and messages. */
export interface RunFaults {
  readonly bySlug: ReadonlyMap<string, number>;
  readonly messages: readonly string[];
}

/** Runs sessions with limited concurrency. The index of a session selects its kind. */
export async function runSessions(
  scene: LoadScene,
  { count, atOnce, kindOf }: { count: number; atOnce: number; kindOf: (index: number) => SessionKind },
): Promise<RunFaults> {
  const bySlug = new Map<string, number>();
  const messages: string[] = [];
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < count; index = next++) {
      try {
        await kindOf(index)(scene);
      } catch (thrown) {
        const slug = thrown instanceof UnexpectedAnswer ? thrown.slug : "client";
        bySlug.set(slug, (bySlug.get(slug) ?? 0) + 1);
        messages.push(thrown instanceof Error ? thrown.message : String(thrown));
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return { bySlug, messages };
}
