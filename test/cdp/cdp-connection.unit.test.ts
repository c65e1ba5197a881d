import { PassThrough, Writable } from "node:stream";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { CdpConnection } from "../../workers/cdp/cdp-connection.ts";
import { pipeBounds } from "../../workers/cdp/pipe-bounds.ts";
import type { ConnectionMessage } from "./connection-message.ts";

/** Records the browser's commands, and answers them. */
class FakeBrowser {
  readonly input = new PassThrough();
  readonly output = new PassThrough();
  readonly sent: ConnectionMessage[] = [];

  constructor() {
    this.input.on("data", (data: Buffer) => {
      for (const text of data.toString().split("\0")) if (text !== "") this.sent.push(JSON.parse(text));
    });
  }

  say(message: ConnectionMessage): void {
    this.output.write(`${JSON.stringify(message)}\0`);
  }

  /** Waits for a command, and returns its id. */
  async asked(method: string, sessionId?: string): Promise<number> {
    const found = () => this.sent.find((each) => each.method === method && each.sessionId === sessionId);
    return (await vi.waitUntil(found, { timeout: 20_000 })).id ?? 0;
  }
}

const listener = { onAttached: vi.fn(), onDetached: vi.fn() };
const onFault = vi.fn();
let browser: FakeBrowser;
let wire: CdpConnection;

beforeEach(() => {
  vi.clearAllMocks();
  browser = new FakeBrowser();
  wire = new CdpConnection(browser.input, browser.output, onFault);
  onTestFinished(() => wire.close());
});

/** Attaches another user to the connection, with its received messages. */
async function attach(session: string) {
  const attaching = wire.attach(listener);
  browser.say({ id: await browser.asked("Target.attachToBrowserTarget"), result: { sessionId: session } });
  const user = await attaching;
  const received: object[] = [];
  user.onevent = (_event, members, sessionId) => received.push({ ...JSON.parse(`{${members}}`), sessionId });
  user.onclose = vi.fn();
  const ask = (id: number, method: string, sessionId?: string): void =>
    user.send({ method, params: "", sessionId }, (answer) =>
      received.push("bytes" in answer ? { id, ...JSON.parse(`{${answer.bytes}}`) } : { id, ...answer }),
    );
  return { user, received, ask };
}

test("a wait for the pipe ends when the connection is closed", async () => {
  const { ask } = await attach("S");
  browser.input.pause();
  while (!browser.input.writableNeedDrain) ask(1, "x".repeat(10_000));
  const drained = wire.drained(new AbortController().signal);
  wire.close();
  await drained;
});

test("routes an answer to its sender under the sender's id", async () => {
  const { received, ask } = await attach("S");
  const ours = wire.root.send("Browser.getVersion");
  ask(1, "Target.getTargets");
  ask(2, "Page.enable", "P");
  browser.say({ id: await browser.asked("Page.enable", "P"), result: {}, sessionId: "P" });
  browser.say({ id: await browser.asked("Target.getTargets", "S"), result: { targetInfos: [] }, sessionId: "S" });
  browser.say({ id: await browser.asked("Browser.getVersion"), result: { product: "x" } });
  expect(await ours).toEqual({ product: "x" });
  await expect
    .poll(() => received)
    .toEqual([
      { id: 2, result: {} },
      { id: 1, result: { targetInfos: [] } },
    ]);
});

test("writes the commands of one tick in one piece", async () => {
  const pieces: string[][] = [];
  const input = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      pieces.push([chunk]);
      done();
    },
    writev(chunks, done) {
      pieces.push(chunks.map(({ chunk }) => chunk));
      done();
    },
  });
  const gathering = new CdpConnection(input, new PassThrough(), onFault);
  onTestFinished(() => gathering.close());
  for (const method of ["Page.enable", "Network.enable"] as const) {
    gathering.root.send(method).catch(() => undefined);
    await Promise.resolve();
  }
  await expect.poll(() => pieces.length).toBe(1);
  gathering.root.send("Inspector.enable").catch(() => undefined);
  await expect.poll(() => pieces.length).toBe(2);
  const methods = pieces.map((piece) => piece.map((text) => /"method":"([^"]+)"/.exec(text)?.[1]));
  expect(methods).toEqual([["Page.enable", "Network.enable"], ["Inspector.enable"]]);
});

test("reports to each client only its own targets", async () => {
  const { received } = await attach("S");
  const ours = vi.fn();
  wire.root.on("Target.attachedToTarget", ours);
  const params = { sessionId: "P", targetInfo: { targetId: "T", type: "page", url: "" } };
  browser.say({ method: "Page.loadEventFired", params: {}, sessionId: "P" });
  browser.say({ method: "Target.attachedToTarget", params, sessionId: "S" });
  browser.say({ method: "Page.loadEventFired", params: {}, sessionId: "P" });
  browser.say({ method: "Target.detachedFromTarget", params, sessionId: "S" });
  browser.say({ method: "Page.loadEventFired", params: {}, sessionId: "P" });
  await expect.poll(() => received.length).toBe(3);
  expect(received[0]).toEqual({ method: "Target.attachedToTarget", params });
  expect([ours, listener.onAttached, listener.onDetached].map(({ mock }) => mock.calls.length)).toEqual([0, 1, 1]);
});

test("fails a command whose answer is too long, but not the next one", async () => {
  const { answerBytes } = pipeBounds;
  onTestFinished(() => {
    pipeBounds.answerBytes = answerBytes;
  });
  pipeBounds.answerBytes = 2 * 2 ** 20;
  const asked = wire.root.send("Browser.getVersion");
  browser.say({ id: await browser.asked("Browser.getVersion"), result: "x".repeat(pipeBounds.answerBytes) });
  await expect(asked).rejects.toThrow("Browser.getVersion: the browser's answer exceeds the size limit");
  const next = wire.root.send("Target.getTargets");
  browser.say({ id: await browser.asked("Target.getTargets"), result: 1 });
  expect(await next).toBe(1);
});

test("fails the commands of a closed target, and all commands when the browser exits", async () => {
  const { user } = await attach("S");
  const [page, root] = [wire.session("P").send("Page.enable"), wire.root.send("Browser.getVersion")];
  wire.drop("P");
  await expect(page).rejects.toThrow("Target closed");
  wire.close();
  await expect(root).rejects.toThrow("the browser has exited");
  expect(user.onclose).toHaveBeenCalledOnce();
  await expect(wire.root.send("Browser.getVersion")).rejects.toThrow("the browser has exited");
});

test("reports an error of a message listener as a fault of that browser", async () => {
  const error = new Error("planted");
  wire.root.on("Target.attachedToTarget", () => {
    throw error;
  });
  browser.say({ method: "Target.attachedToTarget", params: {} });
  browser.output.write("no JSON\0");
  await expect.poll(() => onFault.mock.calls.length).toBe(2);
  expect(onFault.mock.calls[0]).toEqual([error]);
});
