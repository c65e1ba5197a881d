import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { BareClient, type LendScene, startLendScene } from "../support/lend-scene.ts";

let scene: LendScene;
beforeAll(async () => {
  scene = await startLendScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

/** A Playwright in a process of its own, which runs a script with `browser`, `context` and `page`. */
async function runPlaywright(url: string, script: string): Promise<{ client: ChildProcess; said: string }> {
  const program = `
    import { chromium } from "playwright-core";
    const browser = await chromium.connectOverCDP(${JSON.stringify(url)});
    const [context] = browser.contexts();
    const [page] = context.pages();
    ${script}`;
  const client = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void client.kill("SIGKILL"));
  const [said] = await Promise.race([
    once(client.stdout ?? client, "data"),
    once(client, "exit").then(() => Promise.reject(new Error("the client has ended"))),
  ]);
  return { client, said: String(said) };
}

describe.each(["headless-shell", "chromium"])("in %s", (runtime) => {
  test("a client that has done much and vanishes leaves the session as it was", async () => {
    const session = await scene.open({ runtime });
    const drive = (action: object) => scene.rest(`${session}/interact`, { action });
    const state = async () => (await scene.rest(`${session}/state`)).body;
    const observer = await BareClient.connect(await scene.cdpUrl(session));
    onTestFinished(() => observer[Symbol.dispose]());
    const page = await observer.attach();
    const sizeNow = async () => {
      const expression = "[innerWidth, innerHeight]";
      const { result } = await observer.send("Runtime.evaluate", { expression, returnByValue: true }, page);
      return result.result.value;
    };
    await scene.rest(`${session}/navigate`, { url: scene.site.url("/popups.html") });
    const { client, said } = await runPlaywright(
      await scene.cdpUrl(session),
      `
      await page.setViewportSize({ width: 500, height: 400 });
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
      const other = await browser.newContext();
      const foreign = await other.newPage();
      await foreign.goto(${JSON.stringify(scene.site.url("/plain.html"))});
      await page.route("**/plain.html", () => undefined);
      console.log(JSON.stringify([download.suggestedFilename(), page.viewportSize(), context.pages().length]));
      setInterval(() => undefined, 1000);`,
    );
    expect(JSON.parse(said)).toEqual(["report.csv", { width: 500, height: 400 }, 1]);
    expect(await sizeNow()).toEqual([500, 400]);
    client.kill("SIGKILL");

    await expect.poll(sizeNow, { timeout: 20_000 }).toEqual([1280, 720]);
    const { body: tapped } = await drive({ kind: "tap", selector: "#download" });
    expect(tapped.url).toBe(scene.site.url("/popups.html"));
    const finished = { file_name: expect.stringMatching(/^report/), status: "finished" };
    await expect.poll(async () => (await state()).downloads).toMatchObject([finished, finished]);
    // Its route held this page up, while it was there.
    const { body: loaded } = await scene.rest(`${session}/navigate`, { url: scene.site.url("/plain.html") });
    expect(loaded).toMatchObject({ title: "Plain", http_status: 200 });
    expect((await state()).pages).toHaveLength(1);
    await scene.rest(session, undefined, { method: "DELETE" });
  });
});
