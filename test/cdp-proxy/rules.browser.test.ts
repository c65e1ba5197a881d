import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { BareClient, borrowCdpScene, type CdpMessage, type CdpScene } from "../support/cdp-proxy-scene.ts";

let scene: CdpScene;
let session: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  session = await scene.open();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

async function connect(): Promise<BareClient> {
  const client = await BareClient.connect(await scene.cdpUrl(session));
  onTestFinished(() => client[Symbol.dispose]());
  return client;
}

const state = async () => (await scene.rest(`${session}/state`)).body;

describe("harmful commands are refused with a reason", () => {
  const refused: [method: string, params: object, why: string][] = [
    ["Browser.crash", {}, "beyond the session's pages"],
    ["Browser.crashGpuProcess", {}, "beyond the session's pages"],
    ["Target.setRemoteLocations", { locations: [] }, "beyond the session's pages"],
    ["Target.exposeDevToolsProtocol", { targetId: "x" }, "cannot be exposed to a page"],
    ["Target.sendMessageToTarget", { message: "{}" }, "flatten: true"],
    ["Target.attachToTarget", { targetId: "x" }, "flatten: true"],
    ["Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false }, "flatten: true"],
    ["Target.createBrowserContext", { proxyServer: "" }, "proxy"],
    ["Target.createBrowserContext", { proxyBypassList: "" }, "proxy"],
    ["Target.disposeBrowserContext", { browserContextId: "x" }, "only the contexts that it created"],
    ["Target.createTarget", { url: "file:///etc/passwd" }, "sessions cannot open local addresses"],
    ["Target.createTarget", { url: " \tFiLe:///etc/passwd" }, "sessions cannot open local addresses"],
    ["Target.createTarget", { url: "view-source:file:///etc/passwd" }, "sessions cannot open local addresses"],
    ["Target.createTarget", { url: "chrome://settings" }, "sessions cannot open local addresses"],
    ["Target.createTarget", { url: "about:blank", hidden: true }, "hidden"],
    ["Tethering.bind", { port: 8080 }, "beyond the session's pages"],
    ["Extensions.loadUnpacked", { path: "/tmp" }, "beyond the session's pages"],
    ["SystemInfo.getInfo", {}, "its machine"],
    ["SystemInfo.getProcessInfo", {}, "its machine"],
    ["Browser.getBrowserCommandLine", {}, "its machine"],
    ["PWA.launchFilesInApp", { manifestId: "x", files: ["/etc/passwd"] }, "beyond the session's pages"],
    ["Tracing.start", {}, "the whole browser cannot be traced"],
    ["Target.autoAttachRelated", { targetId: "x", waitForDebuggerOnStart: false }, "Target.setAutoAttach"],
    ["Memory.simulatePressureNotification", { level: "critical" }, "beyond the session's pages"],
  ];
  test("on the browser", async () => {
    const client = await connect();
    for (const [method, params, why] of refused) {
      const { error } = await client.send(method, params);
      expect(error, method).toMatchObject({ code: -32_000, message: expect.stringContaining(why) });
    }
    expect((await state()).status).toBe("live");
  });

  test("on a page", async () => {
    const client = await connect();
    const page = await client.attach();
    const navigated = await client.send("Page.navigate", { url: "file:///etc/passwd" }, page);
    expect(navigated.error?.message).toContain("sessions cannot open local addresses");
    const { result } = await client.send("Runtime.evaluate", { expression: "location.href" }, page);
    expect(result.result.value).toBe("about:blank");
    for (const [method, params] of [
      ["Emulation.setVirtualTimePolicy", { policy: "pause" }],
      ["Emulation.setCPUThrottlingRate", { rate: 101 }],
    ] as const) {
      expect((await client.send(method, params, page)).error?.message, method).toContain("page that others share");
    }
    expect((await client.send("Emulation.setCPUThrottlingRate", { rate: 4 }, page)).error).toBeUndefined();
    expect((await client.send("Emulation.setCPUThrottlingRate", { rate: 1 }, page)).error).toBeUndefined();
    const stranger = await client.send("Runtime.evaluate", { expression: "1" }, "0123456789ABCDEF0123456789ABCDEF");
    expect(stranger.error).toEqual({ code: -32_001, message: "Session with given id not found." });
  });
});

test("a method without a policy entry is refused as unknown to the browser", async () => {
  const client = await connect();
  const page = await client.attach();
  for (const session of [undefined, page]) {
    const { error } = await client.send("Page.madeUp", {}, session);
    expect(error).toEqual({
      code: -32_601,
      message: "'Page.madeUp' wasn't found among the methods that sessions serve",
    });
  }
  // The method was removed from the protocol, so it is not forwarded even to browsers that may still support it.
  expect((await client.send("Network.setRequestInterception", { patterns: [] }, page)).error?.code).toBe(-32_601);
});

test("an invalid command returns a JSON-RPC error and does not affect other clients", async () => {
  const client = await connect();
  for (const [text, code] of [
    ["no JSON", -32_700],
    ["[]", -32_600],
    ['{"id":"1","method":"Browser.getVersion"}', -32_600],
    ['{"id":901}', -32_600],
    ['{"id":901,"method":"Browser.getVersion","params":[]}', -32_602],
    [`{"id":901,"method":"Browser.getVersion"}\0{"id":901,"method":"Browser.close"}`, -32_700],
    [`{"id":901,"method":"Browser.getVersion","params":{"x":"${"x".repeat(70_000)}"/**/}}`, -32_700],
  ] as const) {
    const from = client.received.length;
    client.socket.send(text);
    await expect.poll(() => client.received.length).toBe(from + 1);
    expect(client.received[from]?.error?.code, text.slice(0, 80)).toBe(code);
  }
  expect((await client.send("Browser.getVersion")).result.protocolVersion).toBe("1.3");
});

test("Browser.close closes the connection but not the session", async () => {
  const browser = await connectPuppeteer({ browserWSEndpoint: await scene.cdpUrl(session) });
  expect(await browser.pages()).toHaveLength(1);
  await browser.close();
  const client = await connect();
  expect(await client.send("Browser.close")).toEqual({ id: 1, result: {} });
  expect(await client.closed).toEqual({ code: 1000, reason: "browser_closed" });
  expect((await state()).status).toBe("live");
});

test("a page opened by a client belongs to the session and has its cookies", async () => {
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/plain.html") });
  const client = await connect();
  const page = await client.attach();
  await client.send("Runtime.evaluate", { expression: "document.cookie = 'who=me'" }, page);
  const { result } = await client.send("Target.createTarget", { url: scene.site.url("/form.html") });
  // Waits for the title, because the cookies are those of about:blank until the document has loaded.
  await expect.poll(async () => (await state()).pages).toMatchObject([{}, { title: "Form" }]);
  const attached = await client.send("Target.attachToTarget", { targetId: result.targetId, flatten: true });
  const cookie = await client.send("Runtime.evaluate", { expression: "document.cookie" }, attached.result.sessionId);
  expect(cookie.result.result.value).toBe("who=me");
  await client.send("Target.closeTarget", { targetId: result.targetId });
  await expect.poll(async () => (await state()).pages).toHaveLength(1);
});

test("a page that a client leaves paused resumes within 2 s", async () => {
  const sleeper = await connect();
  await sleeper.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
  const client = await connect();
  const { result } = await client.send("Target.createTarget", { url: scene.site.url("/plain.html") });
  const isPaused = ({ params }: CdpMessage) =>
    params?.waitingForDebugger && params.targetInfo.targetId === result.targetId;
  await sleeper.receive(isPaused);
  const titles = async () => (await state()).pages.map(({ title }: { title: string }) => title);
  await expect.poll(titles, { timeout: 10_000 }).toContain("Plain");
  await client.send("Target.closeTarget", { targetId: result.targetId });
});

test("a client may answer dialogs that it receives, and the session answers after 5 s", async () => {
  const client = await connect();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/dialogs.html") });
  const page = await client.attach();
  await client.send("Page.enable", {}, page);
  const ask = (): void =>
    void client.send("Runtime.evaluate", { expression: "document.title = confirm('Sure?')" }, page);
  const last = async () => (await state()).dialogs.at(-1);
  ask();
  const { params } = await client.receive(({ method }) => method === "Page.javascriptDialogOpening");
  // Clients with a built-in DevTools dismiss the dialog at once if there is no other handler.
  expect(params).toMatchObject({ message: "Sure?", hasBrowserHandler: true });
  expect(await last()).toMatchObject({ kind: "confirm", answer: "pending" });
  await client.send("Page.handleJavaScriptDialog", { accept: true }, page);
  await expect.poll(last).toMatchObject({ kind: "confirm", answer: "accepted" });
  await expect.poll(async () => (await state()).title).toBe("true");
  ask();
  await expect.poll(last).toMatchObject({ answer: "pending" });
  await expect.poll(last, { timeout: 10_000 }).toMatchObject({ answer: "dismissed" });
  await client.send("Page.disable", {}, page);
  ask();
  await expect
    .poll(async () => (await state()).dialogs.map(({ answer }: { answer: string }) => answer), {
      timeout: 4_000,
    })
    .toEqual(["accepted", "dismissed", "dismissed"]);
});

test("a client's file paths are resolved by file name only", async () => {
  const client = await connect();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/dialogs.html") });
  const page = await client.attach();
  const document = await client.send("DOM.getDocument", {}, page);
  const input = { nodeId: document.result.root.nodeId, selector: "#file" };
  const { result } = await client.send("DOM.querySelector", input, page);
  const give = (path: string) => client.send("DOM.setFileInputFiles", { files: [path], nodeId: result.nodeId }, page);
  const refused = await give("/etc/passwd");
  expect(refused.error?.message).toContain(`the session has no file "passwd": PUT it`);
  const put = { method: "PUT", body: "in the session" };
  await fetch(`${scene.service.url}${session}/files/passwd`, {
    ...put,
    headers: { authorization: `Bearer ${scene.service.key}` },
  });
  for (const path of ["/etc/passwd", "C:\\fakepath\\passwd", "passwd"]) {
    expect((await give(path)).error, path).toBeUndefined();
    const expression = "document.querySelector('#file').files[0].text()";
    const read = { expression, awaitPromise: true };
    expect((await client.send("Runtime.evaluate", read, page)).result.result.value).toBe("in the session");
  }
});

test("pages in a client's context are private, count towards the limit and close with the client", async () => {
  const client = await connect();
  const { result: context } = await client.send("Target.createBrowserContext");
  const { browserContextId } = context;
  const open = () => client.send("Target.createTarget", { url: "about:blank", browserContextId });
  await open();
  expect((await state()).pages).toHaveLength(1);
  let refused = await open();
  for (let count = 2; count < 40 && !refused.error; count += 1) refused = await open();
  expect(refused.error?.message).toContain("the session already has 32 pages, the maximum");
  client[Symbol.dispose]();
  const other = await connect();
  const pages = async () => {
    const { result } = await other.send("Target.getTargets");
    return result.targetInfos.filter(({ type }: { type: string }) => type === "page");
  };
  await expect.poll(async () => (await pages()).length, { timeout: 15_000 }).toBe(1);
});
