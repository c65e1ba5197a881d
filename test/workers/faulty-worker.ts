// A worker with planted faults in its dialog handling. Prints the ends of the affected sessions and of another.
import { setTimeout as delay } from "node:timers/promises";
import { SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { OpenDialogs } from "../../workers/pages/open-dialogs.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

const throwPlanted = () => {
  throw new Error("planted");
};

/** Throws synchronously, in a later turn without a handler, and in an unhandled promise. */
const faults = [throwPlanted, () => void setImmediate(throwPlanted), () => void Promise.reject(new Error("planted"))];

const errors: string[] = [];

keepRunning({ error: (_fields, message) => void errors.push(message) });
const site = await new FixtureSite().start();
const worker = await WorkerUnderTest.start([site.host]);
const other = await worker.open();
/** True for each victim whose session ended next, as crashed. */
const ended: boolean[] = [];
for (const fault of faults) {
  OpenDialogs.prototype.begin = () => {
    fault();
    return () => undefined;
  };
  const victim = await worker.open();
  await victim.navigate({ url: site.url("/dialogs.html") });
  const action = { case: "tap", value: { selector: "#file" } } as const;
  await victim.interact({ action }).catch(() => undefined);
  while (worker.happenings.length === ended.length && errors.length === 0) await delay(20);
  const { sessionId, event } = worker.happenings.at(-1) ?? {};
  const isCrash = event?.case === "ended" && event.value.reason === SessionEndedReason.CRASHED;
  ended.push(isCrash && sessionId === victim.placement.sessionId);
}
setImmediate(throwPlanted);
const { title } = await other.navigate({ url: site.url("/plain.html") });
process.stdout.write(`${JSON.stringify({ ended, title, errors })}\n`);
await other.destroy();
await worker.stop();
await site.stop();
