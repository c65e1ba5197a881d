import { AsyncLocalStorage } from "node:async_hooks";
import { Counter, type Registry } from "prom-client";

/** Logs an uncaught error, and closes the connection or browser that caused it. */
export type OnFault = (error: unknown) => void;

const owner = new AsyncLocalStorage<OnFault>();
let uncaught = 0;

/** Runs `work`. Uncaught errors of its asynchronous operations are reported to `onFault`. */
export function withFaultHandler(onFault: OnFault, work: () => void): void {
  owner.run(onFault, work);
}

/**
 * Keeps the process running after uncaught errors. Passes each error to the handler set by `withFaultHandler`, or logs
 * it. Ignores failed writes to stdout and stderr, since logging them would fail again.
 */
export function keepRunning(log: { error(fields: object, message: string): void }): void {
  const report: OnFault = (error) => {
    uncaught += 1;
    const onFault = owner.getStore();
    if (onFault) onFault(error);
    else log.error({ err: error }, "uncaught error");
  };
  for (const output of [process.stdout, process.stderr]) output.on("error", () => undefined);
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
}

/** Adds the number of uncaught errors to the metrics. */
export function addUncaughtErrors(registry: Registry): void {
  new Counter({
    name: "pilothouse_uncaught_errors_total",
    help: "Errors that escaped their handler. Each is a bug, and is logged with its stack.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(uncaught);
    },
  });
}
