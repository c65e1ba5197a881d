import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { InputLedger } from "../../test/support/input-ledger.ts";
import { acknowledgedAll, expectedOfRun, latencies, presses, sendAtRate } from "../../test/support/input-run.ts";
import { type InputJson, type InputTarget, inputTransports, openInput } from "../../test/support/input-stream.ts";
import { restClient } from "../../test/support/rest.ts";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { RawBrowser } from "./raw-browser.ts";
import { median, spread } from "./samples.ts";

const perSecond = 250;

/** Milliseconds that input may take longer than in-process CDP. */
const bar = 2;

/** Milliseconds for the last events to be reported. */
const reportMs = 60_000;

/** Time from the sending of a key or press to the page's handler, at 250 events per second, per transport. */
export const input: Bench = {
  name: "input",
  title: "input events, 250 a second: from a client to the page's handler, against CDP in-process; keys and presses",
  async run(scale): Promise<Row[]> {
    const count = scale.of(20_000, 2_000);
    await using ledger = await InputLedger.start();
    const bare = await byCdp(ledger, count);
    const service = await startService({ EGRESS_ALLOW: ledger.host });
    try {
      const target = await openSession(service, ledger);
      const rows: Row[] = [];
      for (const transport of inputTransports) {
        ledger.received.length = 0;
        using stream = await openInput(transport, target);
        const sentAt = await sendAtRate(count, perSecond, (event) => stream.send([event]));
        await acknowledgedAll(stream);
        const ours = await timesOf(ledger, count, sentAt);
        const verdict = boundVerdict(median(ours) - median(bare), bar, "ms more (p50)");
        rows.push({ what: `${transport}, ${count} events`, ours: spread(ours), bare: spread(bare), verdict });
      }
      return rows;
    } finally {
      await service.stop();
    }
  },
};

async function openSession({ url, grpcAddress, key }: Service, ledger: InputLedger): Promise<InputTarget> {
  const rest = restClient({ url, key });
  const { body } = await rest("/v1/agent-sessions", {});
  await rest(`/v1/sessions/${body.session_id}/navigate`, { url: ledger.url });
  await rest(`/v1/agent-sessions/${body.id}/takeover`, { client_id: "bench" });
  return { url, grpcAddress, key, agentId: body.id, clientId: "bench" };
}

/** Awaits the page's report. Returns the milliseconds of each press; throws if events differ from those sent. */
async function timesOf(ledger: InputLedger, count: number, sentAt: readonly number[]): Promise<number[]> {
  const expected = expectedOfRun(count);
  await waitUntil(() => presses(ledger.received).length >= expected.length, { timeout: reportMs, every: 100 });
  const received = presses(ledger.received);
  const fault = expected.findIndex((what, index) => received[index] !== what);
  if (fault >= 0 || received.length !== expected.length)
    throw new Error(`the page heard ${received.length} of ${expected.length}; number ${fault} is ${received[fault]}`);
  return latencies(count, sentAt, ledger.received);
}

async function byCdp(ledger: InputLedger, count: number): Promise<number[]> {
  const browser = new RawBrowser("chromium");
  try {
    const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
    await browser.send("Page.enable", {}, sessionId);
    const loaded = browser.event("Page.loadEventFired", sessionId);
    await browser.send("Page.navigate", { url: ledger.url }, sessionId);
    await loaded;
    const sentAt = await sendAtRate(count, perSecond, (event) => {
      const [method, params] = commandOf(event);
      void browser.send(method, params, sessionId);
    });
    return await timesOf(ledger, count, sentAt);
  } finally {
    await browser.kill();
  }
}

function commandOf({ kind, key, x, y }: InputJson): [string, object] {
  const button = { button: "left", clickCount: 1 };
  switch (kind) {
    case "pointer_move":
      return ["Input.dispatchMouseEvent", { type: "mouseMoved", x, y }];
    case "pointer_down":
      return ["Input.dispatchMouseEvent", { type: "mousePressed", x, y, ...button }];
    case "pointer_up":
      return ["Input.dispatchMouseEvent", { type: "mouseReleased", x, y, ...button }];
    default:
      return ["Input.dispatchKeyEvent", { type: kind === "key_down" ? "keyDown" : "keyUp", key, text: key }];
  }
}
