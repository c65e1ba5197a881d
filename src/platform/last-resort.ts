import { AsyncLocalStorage } from "node:async_hooks";
import { Counter, type Registry } from "prom-client";

/** Ends the connection, or the browser, that an uncaught error is the fault of, and logs the error. */
export type OnFault = (error: unknown) => void;

const owner = new AsyncLocalStorage<OnFault>();
let uncaught = 0;

/** Runs `work`, and reports to `onFault` each error that escapes later from what `work` has started. */
export function ownFaults(onFault: OnFault, work: () => void): void {
  owner.run(onFault, work);
}

/**
 * Keeps the process running after an uncaught error, which its owner ends and logs. An error without an owner is logged.
 * The reader of the log may leave: a failed write is no error, since to log it would fail again, without end.
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

/** Adds the number of uncaught errors of this process to its metrics. */
export function addUncaughtErrors(registry: Registry): void {
  new Counter({
    name: "pilothouse_uncaught_errors_total",
    help: "Errors that escaped their handler. Each is a fault of the program, and is logged with its stack.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(uncaught);
    },
  });
}
