import { createServer } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { BareClient, borrowCdpScene, type CdpMessage, type CdpScene } from "../support/cdp-proxy-scene.ts";

let scene: CdpScene;
/** Path of the session that tests share. */
let session: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  session = await scene.open();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

/** Connects a client to the session's only page, and returns functions that send commands and run scripts there. */
async function enter() {
  const { body } = await scene.rest(`${session}/state`);
  for (const { id, active } of body.pages)
    if (!active) await scene.rest(`${session}/interact`, { action: { kind: "close_page", page_id: id } });
  const client = await BareClient.connect(await scene.cdpUrl(session));
  onTestFinished(() => client[Symbol.dispose]());
  const page = await client.attach();
  const send = (method: string, params: object = {}) => client.send(method, params, page);
  const run = async (expression: string) => {
    const { result } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    return result.result.value;
  };
  return { client, send, run };
}

test("a CDP client cannot reach addresses that its session may not reach", async () => {
  let requests = 0;
  const secret = createServer((_request, response) => {
    requests += 1;
    response.end("secret");
  });
  await new Promise<void>((resolve) => secret.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void secret.close());
  const address = secret.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const { client, send, run } = await enter();
  for (const url of [`http://127.0.0.1:${port}/`, `http://[::ffff:127.0.0.1]:${port}/`, "http://169.254.169.254/"]) {
    await send("Page.navigate", { url });
    await client.send("Target.createTarget", { url });
    // If the page has this origin, it reads the refusal.
    const read = await run(`fetch("${url}").then((answer) => answer.text(), () => "")`);
    expect(read).not.toContain("secret");
  }
  expect(requests).toBe(0);
});

test("a CDP client cannot read local files by any command", async () => {
  const { client, send, run } = await enter();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/dialogs.html") });
  const { result: frames } = await send("Page.getFrameTree");
  const frameId = frames.frameTree.frame.id;
  const options = { disableCache: true, includeCredentials: false };
  const loaded = await send("Network.loadNetworkResource", { frameId, url: "file:///etc/passwd", options });
  expect(loaded.error?.message).toContain("sessions cannot open local addresses");
  const isPaused = ({ method }: CdpMessage) => method === "Fetch.requestPaused";
  await send("Fetch.enable", { patterns: [{ urlPattern: "*/text*" }] });
  const fetched = run(`fetch("/text?megabytes=0").then((answer) => answer.text(), () => "nothing")`);
  const { params } = await client.receive(isPaused);
  await send("Fetch.continueRequest", { requestId: params.requestId, url: "file:///etc/passwd" });
  expect(await fetched).toBe("nothing");
  // The response of a document request, too, which would be shown under the requested address.
  await send("Fetch.enable", { patterns: [{ urlPattern: "*/plain.html" }] });
  void run(`location.href = "/plain.html"`).catch(() => undefined);
  const document = await client.receive(
    ({ method, params }) => method === "Fetch.requestPaused" && params.resourceType === "Document",
  );
  await send("Fetch.continueRequest", { requestId: document.params.requestId, url: "file:///etc/passwd" });
  await send("Fetch.disable");
  // Waits for the next page. Scripts fail while its navigation is committed.
  let shown = "";
  const look = async () => {
    shown = await run(`location.pathname + " " + document.documentElement.innerText`).catch(() => "/dialogs.html");
    return shown;
  };
  await expect.poll(look).not.toMatch(/^\/dialogs.html/);
  expect(shown).not.toContain("root:");
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/dialogs.html") });
  await run(`location.href = "file:///etc/passwd"`);
  expect(await run("location.protocol")).toBe("http:");
});

test("worlds, documents and contexts created by a CDP client cannot read local files", async () => {
  const { client, send, run } = await enter();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/plain.html") });
  const { result: frames } = await send("Page.getFrameTree");
  const frameId = frames.frameTree.frame.id;
  const { result: world } = await send("Page.createIsolatedWorld", { frameId, grantUniveralAccess: true });
  const files = ["/etc/passwd", "/proc/self/environ", scene.service.dataDir];
  for (const path of files) {
    const expression = `fetch("file://${path}").then((answer) => answer.text(), () => "nothing")`;
    const params = { expression, contextId: world.executionContextId, awaitPromise: true };
    expect((await send("Runtime.evaluate", params)).result.result.value, path).toBe("nothing");
  }
  await send("Page.setDocumentContent", {
    frameId,
    html: `<title>framed</title><iframe src="file:///etc/passwd"></iframe><a href="file:///etc/passwd" target="_blank">open</a>`,
  });
  await run("document.querySelector('a').click(), window.open('file:///etc/passwd')");
  const { result: context } = await client.send("Target.createBrowserContext");
  const own = { browserContextId: context.browserContextId, url: "file:///etc/passwd" };
  expect((await client.send("Target.createTarget", own)).error?.message).toContain(
    "sessions cannot open local addresses",
  );
  const { result } = await client.send("Target.getTargets");
  const local = result.targetInfos.filter(({ url, title }: { url: string; title: string }) =>
    /^file:|root:/.test(url + title),
  );
  expect(local).toEqual([]);
  const { result: tree } = await send("Page.getFrameTree");
  expect(JSON.stringify(tree)).not.toContain('"url":"file:');
  for (const handle of ["blob:null/1", "/etc/passwd", "0"]) {
    expect((await send("IO.read", { handle })).error, handle).toBeDefined();
  }
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: scene.service.dataDir });
  await send("Page.setInterceptFileChooserDialog", { enabled: true });
  expect((await send("Page.handleFileChooser", { action: "accept", files: ["/etc/passwd"] })).error).toBeDefined();
});

test("a CDP client cannot upload a file of another session", async () => {
  const other = await scene.open();
  const headers = { authorization: `Bearer ${scene.service.key}` };
  await fetch(`${scene.service.url}${other}/files/theirs.txt`, { method: "PUT", body: "theirs", headers });
  const { send } = await enter();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/dialogs.html") });
  const { result: document } = await send("DOM.getDocument");
  const { result } = await send("DOM.querySelector", { nodeId: document.root.nodeId, selector: "#file" });
  const given = await send("DOM.setFileInputFiles", { files: ["../../files/theirs.txt"], nodeId: result.nodeId });
  expect(given.error?.message).toContain('the session has no file "theirs.txt"');
});
