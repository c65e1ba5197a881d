// A worker with a fault in what it does at a page's dialog. Prints what becomes of a session that meets it, and of another.
import { setTimeout as delay } from "node:timers/promises";
import { keepGoing } from "../../workers/last-resort.ts";
import { DialogDesk } from "../../workers/pages/dialog-desk.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

const errors: string[] = [];

keepGoing({ info: () => undefined, warn: () => undefined, error: (_object, message) => void errors.push(message) });
DialogDesk.prototype.record = () => {
  throw new Error("planted");
};
const site = await new FixtureSite().start();
const worker = await WorkerUnderTest.start([site.host]);
const [victim, other] = [await worker.open(), await worker.open()];
await victim.navigate({ url: site.url("/dialogs.html") });
const action = { case: "tap", value: { selector: "#file" } } as const;
await victim.interact({ action }).catch(() => undefined);
while (worker.happenings.length === 0) await delay(20);
const { title } = await other.navigate({ url: site.url("/plain.html") });
const ended = worker.happenings.map(({ sessionId, event }) => [sessionId === victim.placement.sessionId, event.case]);
process.stdout.write(`${JSON.stringify({ ended, title, errors })}\n`);
await other.destroy();
await worker.stop();
await site.stop();
