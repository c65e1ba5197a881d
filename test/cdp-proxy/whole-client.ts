import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { CdpScene } from "../support/cdp-proxy-scene.ts";
import { recordCdp } from "../support/cdp-recorder.ts";
import { type Deeds, runOutside } from "../support/outside-client.ts";
import { type ClientName, methodsOf } from "./client-methods.ts";

/** Client whose program performs all actions of a client. */
export interface WholeClient {
  readonly command: readonly string[];
  /** Actions that this client does not support. */
  readonly cannot?: Partial<Deeds>;
  /** Clients whose methods it sends, if it is known to send no others. */
  readonly methodsOf?: readonly ClientName[];
  /** Size of the file that it sends itself. If omitted, the file is uploaded to the session beforehand. */
  readonly sends?: number;
}

const program = (name: string) => [process.execPath, new URL(`programs/${name}`, import.meta.url).pathname];

export const playwright = (sends: number): WholeClient => ({
  command: program("playwright.ts"),
  sends,
  methodsOf: ["playwright"],
});
export const puppeteer: WholeClient = { command: program("puppeteer.ts"), methodsOf: ["puppeteer"] };
export const devtoolsMcp: WholeClient = {
  command: program("devtools-mcp.ts"),
  cannot: { download: null },
  methodsOf: ["puppeteer", "chromeDevtoolsMcp"],
};
export const cdpUse = (python: string): WholeClient => ({
  command: [python, new URL("programs/with_cdp_use.py", import.meta.url).pathname],
});

/**
 * Runs a client on one page of a session while REST taps continuously on another page, and then kills the client.
 * Expects the client to leave no trace in the session.
 */
export async function runWhole(scene: CdpScene, runtime: string, client: WholeClient): Promise<void> {
  const session = await scene.open({ runtime });
  const drive = async (action: object, page_id?: string) => {
    const { status, body } = await scene.rest(`${session}/interact`, { action, page_id, timeout_ms: 20_000 });
    expect([status, body.detail]).toEqual([200, undefined]);
    return body;
  };
  const tap = (selector: string, pageId?: string) => drive({ kind: "tap", selector }, pageId);
  const state = async () => (await scene.rest(`${session}/state`)).body;
  const page = scene.site.url("/client.html");
  const tapped = scene.site.url("/client.html?tapped");
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/popups.html") });
  const { opened, page_id: tappedId } = await tap("#blank");
  await scene.rest(`${session}/navigate`, { url: tapped, page_id: tappedId });
  await scene.rest(`${session}/navigate`, { url: page, page_id: opened[0] });
  const file = await makeFile(scene, session, client.sends);

  const taps = new Taps(() => tap("#count", tappedId));
  const recorder = await recordCdp(await scene.cdpUrl(session));
  const orders = { url: recorder.url, page, file: file.path };
  const { deeds, vanish } = await runOutside(client.command, orders);
  const counted = `count ${await taps.end()}`;
  const titles = async () => (await state()).pages.map(({ title }: { title: string }) => title);
  await expect.poll(titles).toContain(counted);
  expect(deeds).toEqual({
    form: "Hello Grace",
    popup: "Plain",
    download: "report.csv",
    upload: `file ${file.name} ${file.sha1}`,
    dialog: ["Really?", "confirm true"],
    screenshot: "PNG",
    ...client.cannot,
  });
  await vanish();
  expect(recorder.methods.size).toBeGreaterThan(10);
  const listed = client.methodsOf?.flatMap(methodsOf);
  if (listed) expect([...recorder.methods].filter((method) => !listed.includes(method))).toEqual([]);

  // The client's viewport, context and pauses are reset, and its open dialog is answered.
  await expect.poll(async () => (await tap("#size", opened[0])).title, { timeout: 20_000 }).toBe("1280 x 720");
  expect((await state()).pages.map(({ url }: { url: string }) => url)).toEqual([tapped, page]);
  await tap("#download", opened[0]);
  const finished = { file_name: expect.stringMatching(/^report/), status: "finished" };
  await expect.poll(async () => (await state()).downloads).toMatchObject([finished, finished]);
  const headers = { authorization: `Bearer ${scene.service.key}` };
  for (const { file_name } of (await state()).downloads)
    expect(await (await fetch(`${scene.service.url}${session}/files/${file_name}`, { headers })).text()).toBe(
      "a,b\n1,2\n",
    );
  expect(await tap("#ask", opened[0])).toMatchObject({ title: "confirm false" });
  const { opened: popups } = await tap("#popup", opened[0]);
  const condition = { kind: "url", pattern: "**/plain.html" };
  expect((await scene.rest(`${session}/wait`, { condition, page_id: popups[0] })).status).toBe(200);
  const { body: loaded } = await scene.rest(`${session}/navigate`, { url: page, page_id: opened[0] });
  expect(loaded).toMatchObject({ title: "Client", http_status: 200 });
  await scene.rest(session, undefined, { method: "DELETE" });
}

/** Creates a file for the page: a large local file if the client sends it, otherwise a file of the session. */
async function makeFile(scene: CdpScene, session: string, bytes: number | undefined) {
  const name = bytes === undefined ? "notes.txt" : "large.bin";
  const content = Buffer.alloc(bytes ?? 1_000, "content of a file ");
  // Unread if the session has the file. chrome-devtools-mcp accepts only paths in the temporary directory.
  const path = join(tmpdir(), name);
  if (bytes !== undefined) await writeFile(path, content);
  else {
    const headers = { authorization: `Bearer ${scene.service.key}` };
    await fetch(`${scene.service.url}${session}/files/${name}`, { method: "PUT", body: content, headers });
  }
  return { name, path, sha1: createHash("sha1").update(content).digest("hex") };
}

/** Sends taps continuously. */
class Taps {
  readonly #done: Promise<number>;
  #isOver = false;

  constructor(tap: () => Promise<unknown>) {
    this.#done = this.#run(tap);
    this.#done.catch(() => undefined);
  }

  /** Stops the taps and returns their number. */
  async end(): Promise<number> {
    this.#isOver = true;
    return this.#done;
  }

  async #run(tap: () => Promise<unknown>): Promise<number> {
    let count = 0;
    for (; !this.#isOver; count += 1) await tap();
    return count;
  }
}
