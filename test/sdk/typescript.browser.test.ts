import { afterAll, beforeAll, expect, test } from "vitest";
import { Pilothouse } from "../../sdk/typescript/src/index.ts";
import { borrowLendScene, type LendScene } from "../support/cdp-proxy-scene.ts";

let scene: LendScene;
let client: Pilothouse;

beforeAll(async () => {
  scene = await borrowLendScene();
  client = new Pilothouse({ apiKey: scene.service.key, baseUrl: scene.service.url });
});

afterAll(() => scene?.[Symbol.asyncDispose]());

test("drives a session from create to end", async () => {
  const session = await client.sessions.create({ labels: { suite: "sdk" } });
  const types: string[] = [];
  const events = session.events();
  const first = events.next();
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
  await browser.contexts()[0]?.pages()[0]?.goto(scene.site.url("/plain.html"));
  await browser.close();
  expect((await session.state()).url).toBe(scene.site.url("/plain.html"));
});
