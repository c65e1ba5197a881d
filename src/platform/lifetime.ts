import type { Log } from "./log.ts";

/** A part with a lifetime. */
export interface Part {
  start?(): void | Promise<void>;
  stop?(): void | Promise<void>;
}

/** Starts parts in order, and stops started parts in reverse order. Repeated calls have no effect. */
export function createLifetime(parts: readonly Part[], log: Log): { start(): Promise<void>; stop(): Promise<void> } {
  const begun: Part[] = [];
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function startAll(): Promise<void> {
    for (const part of parts) {
      if (stopping) throw new Error("the app was stopped during its start");
      begun.push(part);
      await part.start?.();
    }
  }

  async function stopAll(): Promise<void> {
    await starting?.catch(() => undefined);
    for (const part of begun.splice(0).reverse()) {
      try {
        await part.stop?.();
      } catch (error) {
        log.error({ err: error }, "failed to stop a part");
      }
    }
  }

  return {
    start: () => {
      starting ??= startAll();
      return starting;
    },
    stop: () => {
      stopping ??= stopAll();
      return stopping;
    },
  };
}
