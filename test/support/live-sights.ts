import type { Page } from "playwright";
import { expect } from "vitest";
import { BareClient, type CdpScene } from "./cdp-proxy-scene.ts";
import { type LiveViewer, says } from "./live-viewer.ts";

const colours = { red: [255, 0, 0], lime: [0, 255, 0], blue: [0, 0, 255], black: [0, 0, 0] };
const pollOptions = { timeout: 60_000 };

/** Transport of a picture. */
type Medium = "frames" | "video";

/** Returns the approximate colour of the picture's centre and the picture's transport. */
function sightOf(page: Page): Promise<string> {
  return page.evaluate((known) => {
    const picture = document.querySelector("canvas");
    const { data = [] } = picture?.getContext("2d")?.getImageData(picture.width / 2, picture.height / 2, 1, 1) ?? {};
    const isLike = (colour: number[]) => colour.every((part, index) => Math.abs(part - (data[index] ?? 0)) < 40);
    if ((data[3] ?? 0) === 0) return "nothing";
    const found = Object.entries(known).find(([, colour]) => isLike(colour))?.[0] ?? [...data].join();
    return `${found} by ${picture?.dataset.sequence?.startsWith("video") ? "video" : "frames"}`;
  }, colours);
}

/** Resolves when a viewer sees a colour. */
export async function sees(page: Page, colour: keyof typeof colours, by: Medium = "frames"): Promise<void> {
  await expect.poll(() => sightOf(page), pollOptions).toBe(`${colour} by ${by}`);
}

/** Pages of one colour each, for viewers of a session. */
export function sightsOf(scene: CdpScene) {
  const pageOf = (query: string) => scene.site.url(`/colours.html?${query}`);
  const navigate = async (session: string, url: string) =>
    expect(await scene.rest(`${session}/navigate`, { url })).toMatchObject({ status: 200 });
  const interact = async (session: string, action: object) =>
    expect(await scene.rest(`${session}/interact`, { action })).toMatchObject({ status: 200 });

  /** Shows viewers of a red page another tab, another origin, another size, and a page after a crash. */
  async function showAll(session: string, viewers: readonly LiveViewer[], by: Medium): Promise<void> {
    const all = (check: (page: Page) => Promise<unknown>) => Promise.all(viewers.map(({ page }) => check(page)));
    await interact(session, { kind: "tap", selector: "#open" });
    await all((page) => sees(page, "blue", by));
    await interact(session, { kind: "activate_page", page_id: "page_1" });
    await all((page) => sees(page, "red", by));

    await navigate(session, pageOf("lime").replace("127.0.0.1", "localhost"));
    await all((page) => sees(page, "lime", by));
    // The last change must be shown, however soon it follows the one before.
    await navigate(session, pageOf("red-black"));
    await all((page) => sees(page, "black", by));

    await interact(session, { kind: "close_page", page_id: "page_2" });
    using client = await BareClient.connect(await scene.cdpUrl(session));
    const attached = await client.attach();
    const size = { width: 800, height: 600, deviceScaleFactor: 1, mobile: false };
    await client.send("Emulation.setDeviceMetricsOverride", size, attached);
    const widthOf = (page: Page) => page.evaluate(() => document.querySelector("canvas")?.width);
    await all((page) => expect.poll(() => widthOf(page), pollOptions).toBe(800));

    client.socket.send(JSON.stringify({ id: 99, method: "Page.crash", sessionId: attached }));
    await all((page) => says(page, "notice", "crashed"));
    await navigate(session, pageOf("blue"));
    await all((page) => sees(page, "blue", by));
    await all((page) => says(page, "notice", /^$/));
    expect(viewers.flatMap(({ faults }) => faults)).toEqual([]);
  }

  return { pageOf, navigate, showAll };
}
