import type { Log } from "./log.ts";
import { faultOwner } from "./wire/wire.ts";

/**
 * Keeps the worker going when something is thrown that nobody catches. What a browser's message has set going is the
 * fault of that browser, which then counts as dead: its session ends `crashed`, and all others go on.
 */
export function keepGoing(log: Log): void {
  const bear = (error: unknown) => {
    const onFault = faultOwner.getStore();
    if (onFault) onFault(error);
    else log.error({ err: error }, "something was thrown that nobody has caught");
  };
  process.on("uncaughtException", bear);
  process.on("unhandledRejection", bear);
}
