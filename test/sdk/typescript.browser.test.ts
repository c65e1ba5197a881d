import { afterAll, beforeAll, expect, test } from "vitest";
import { Pilothouse, PilothouseConnectionError, PilothouseTimeoutError } from "../../sdk/typescript/src/index.ts";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";

let scene: CdpScene;
let client: Pilothouse;

beforeAll(async () => {
  scene = await borrowCdpScene();
  client = new Pilothouse({ apiKey: scene.service.key, baseUrl: scene.service.url });
});

afterAll(() => scene?.[Symbol.asyncDispose]());

test("drives a session from create to end", async () => {
  const session = await client.sessions.create({ labels: { suite: "sdk" } });
  const types: string[] = [];
  const events = session.events();
  let isOpen = false;
  const first = events.next().finally(() => {
    isOpen = true;
  });
  // Navigations are reported only to open streams.
  while (!isOpen) await session.goto(scene.site.url("/form.html"));
  expect(await session.goto(scene.site.url("/form.html"))).toMatchObject({ http_status: 200, title: "Form" });
  await session.fill("#name", "Eve");
  await session.type("Love", { target: "#empty" });
  expect(await session.press("Backspace", { timeout_ms: 10_000 })).toMatchObject({ title: "key Backspace" });
  const { observation } = await session.tap("#check", { observe: {} });
  for (const value of ["Eve", "Lov"]) expect(observation?.snapshot).toContain(`"${value}"`);
  await session.wait("#name");
  await session.wait({ kind: "load_state" }, { timeout_ms: 1_000 });
  await session.scroll({ dy: 300 });
  expect((await session.state()).scroll?.y).toBe(300);
  expect((await session.observe({ scope: "page" })).snapshot).toContain("Eve");
  expect((await session.read()).markdown).toEqual(expect.any(String));
  expect(
    Buffer.from(await session.screenshot())
      .subarray(1, 4)
      .toString(),
  ).toBe("PNG");
  expect(
    Buffer.from(await session.pdf({ paper: "a5" }))
      .subarray(0, 4)
      .toString(),
  ).toBe("%PDF");
  const listed: string[] = [];
  for await (const { id } of client.sessions.list({ label: ["suite:sdk"], limit: 1 })) listed.push(id);
  expect(listed).toEqual([session.id]);
  await session.end();
  await session.end();
  types.push((await first).value?.type ?? "");
  for await (const { type } of events) types.push(type);
  expect(types).toContain("session.page_navigated");
  expect(types.at(-1)).toBe("session.completed");
  await expect(session.state()).rejects.toMatchObject({ slug: "session-destroyed", status: 410 });
});

test("moves files, links a viewer and connects Playwright", async () => {
  await using session = await client.sessions.create();
  expect(await session.files.put("ä b.txt", "a file")).toMatchObject({ name: "ä b.txt", bytes: 6 });
  expect(new TextDecoder().decode(await session.files.get("ä b.txt"))).toBe("a file");
  const names: string[] = [];
  for await (const { name } of session.files.list()) names.push(name);
  expect(names).toEqual(["ä b.txt"]);
  await session.files.delete("ä b.txt");
  await expect(session.files.get("ä b.txt")).rejects.toMatchObject({ slug: "not-found" });
  expect(await session.liveUrl({ control: true })).toMatch(/^http/);
  const browser = await session.connect("playwright");
  await browser.contexts()[0]?.pages()[0]?.goto(scene.site.url("/form.html"));
  await browser.close();
  expect((await session.state()).url).toBe(scene.site.url("/form.html"));
});

test("drives a session over one WebSocket, in the order of the calls", async () => {
  await using session = await client.sessions.create();
  const drive = await session.drive();
  const done: string[] = [];
  const pageUrl = scene.site.url("/form.html");
  const [page, , picture] = await Promise.all([
    drive.goto(pageUrl).finally(() => done.push("goto")),
    drive.fill("#name", "Eve").finally(() => done.push("fill")),
    drive.screenshot({ full_page: true }).finally(() => done.push("screenshot")),
  ]);
  expect(page).toMatchObject({ http_status: 200, title: "Form" });
  expect(Buffer.from(picture).subarray(1, 4).toString()).toBe("PNG");
  expect(done).toEqual(["goto", "fill", "screenshot"]);
  expect((await drive.observe()).snapshot).toContain('"Eve"');
  await expect(drive.tap("#none", { timeout_ms: 100 })).rejects.toMatchObject({ slug: "session-timeout", status: 504 });
  const reason = new Error("no longer needed");
  await expect(drive.state({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await expect(drive.wait("#none", { timeout_ms: 5_000 }, { timeoutMs: 50 })).rejects.toBeInstanceOf(
    PilothouseTimeoutError,
  );
  const last = drive.state();
  await drive.close();
  expect((await last).url).toBe(pageUrl);
  await expect(drive.state()).rejects.toBeInstanceOf(PilothouseConnectionError);
  await session.end();
  const late = await session.drive();
  await expect(late.state()).rejects.toMatchObject({ slug: "session-destroyed" });
});

test("fetches a page in each format", async () => {
  const page = await client.fetch(scene.site.url("/form.html"), {
    formats: ["markdown", "links", "screenshot", "pdf"],
  });
  expect(page).toMatchObject({ http_status: 200, title: "Form", markdown: expect.any(String) });
  expect(
    Buffer.from(page.screenshot ?? [])
      .subarray(1, 4)
      .toString(),
  ).toBe("PNG");
  expect(
    Buffer.from(page.pdf ?? [])
      .subarray(0, 4)
      .toString(),
  ).toBe("%PDF");
});
