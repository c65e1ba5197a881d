import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DeviceSite, type DeviceWord } from "../support/device-site.ts";
import { withLong } from "../support/long-test.ts";
import { resolveToLoopback } from "../support/vendor-site.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

let site: DeviceSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new DeviceSite().start();
  worker = await WorkerUnderTest.start(site.hosts, { resolve: resolveToLoopback });
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

const phone = { touchPoints: 1, hasTouchEvents: true, coarse: true, hover: false };
const desk = { touchPoints: 0, hasTouchEvents: false, coarse: false, hover: true };
const hints = (platform: string, mobile: boolean) => ({ platform, mobile });

/** Expected identity of each archetype; `hints: undefined` is a browser without client hints. */
const archetypes = {
  "desktop-chrome": { ...desk, platform: "Linux x86_64", ratio: 1, screen: "1920x1080", hints: hints("Linux", false) },
  "desktop-chrome-hidpi": {
    ...desk,
    platform: "Linux x86_64",
    ratio: 2,
    screen: "1920x1080",
    hints: hints("Linux", false),
  },
  "pixel-7": {
    ...phone,
    platform: "Linux armv81",
    ratio: 2.625,
    screen: "412x915",
    hints: { ...hints("Android", true), model: "Pixel 7", platformVersion: "14.0.0", formFactors: ["Mobile"] },
  },
  "iphone-15": { ...phone, platform: "iPhone", ratio: 3, screen: "393x852", hints: undefined },
  "ipad-pro-11": { ...phone, platform: "iPad", ratio: 2, screen: "834x1194", hints: undefined },
  "desktop-firefox": { ...desk, platform: "Win32", ratio: 1, screen: "1920x1080", hints: undefined },
} as const;

type ArchetypeName = keyof typeof archetypes;

/** A service worker's script is requested without the emulated device. */
const browsersOwn = "/service.js";

/** Properties that full Chromium does not emulate in cross-site frames. */
const screen = ["ratio", "screen"] as const;

async function visit(archetype: ArchetypeName, runtime: string): Promise<Readonly<Record<string, DeviceWord>>> {
  const session = await worker.open({ archetype, runtime, locale: "de-DE", timezone: "Asia/Tokyo" });
  onTestFinished(() => session.destroy());
  const said = site.expect();
  await session.navigate({ url: `http://${site.hosts[0]}/` });
  return said;
}

function without(word: DeviceWord, names: readonly (keyof DeviceWord)[]) {
  return Object.fromEntries(Object.entries(word).filter(([name]) => !names.some((other) => other === name)));
}

/** One device of each platform, and for `npm run test-long` the others too. */
const all = withLong<ArchetypeName>(
  ["desktop-chrome", "pixel-7", "iphone-15", "desktop-firefox"],
  ["desktop-chrome-hidpi", "ipad-pro-11"],
).map((name) => ["headless-shell", name] as const);
/** In full Chromium: a phone with client hints, and for `npm run test-long` a desktop and a phone without them. */
const some = withLong<ArchetypeName>(["pixel-7"], ["desktop-chrome", "iphone-15"]).map(
  (name) => ["chromium", name] as const,
);

describe.each([...all, ...some])("in %s, %s", (runtime, archetype) => {
  test("reports the same identity everywhere", { timeout: 60_000 }, async () => {
    const { page, ...others } = await visit(archetype, runtime);
    if (!page) throw new Error("the page has said nothing");
    const { hints: expectedHints, ...expected } = archetypes[archetype];
    const place = { language: "de-DE", languages: "de-DE", locale: "de-DE", timezone: "Asia/Tokyo", offset: -540 };
    expect(page).toMatchObject({ ...expected, ...place, webdriver: true });
    if (expectedHints) expect(page.hints).toMatchObject(expectedHints);
    else expect(page.hints).toBeUndefined();
    expect(page.userAgent).not.toContain("Headless");
    expect(JSON.stringify(page.hints ?? {})).not.toContain("Headless");
    for (const [name, word] of Object.entries(others)) {
      const leftOut = runtime === "chromium" && name === "otherFrame" ? screen : [];
      expect(page, name).toMatchObject(without(word, leftOut));
      expect(Object.hasOwn(word, "hints"), name).toBe(Object.hasOwn(page, "hints"));
    }
    expect(Object.keys(others).sort()).toEqual([
      "frame",
      "otherFrame",
      "otherPopup",
      "popup",
      "service",
      "shared",
      "worker",
    ]);
    expectHeaders(page);
  });
});

function expectHeaders({ userAgent, hints }: DeviceWord): void {
  const documents = ["/", ...[...site.headers.keys()].filter((path) => path.startsWith("/child"))];
  expect(documents).toHaveLength(5);
  for (const [path, headers] of site.headers) {
    if (path === browsersOwn) continue;
    expect(headers, path).toMatchObject({ "user-agent": userAgent, "accept-language": "de-DE" });
    if (!hints) expect(headers["sec-ch-ua"] ?? headers["sec-ch-ua-platform"], path).toBeUndefined();
    if (!hints || !documents.includes(path)) continue;
    expect(headers["sec-ch-ua"], path).toBe(brandsOf(hints));
    expect(headers["sec-ch-ua-mobile"], path).toBe(hints.mobile === true ? "?1" : "?0");
    expect(headers["sec-ch-ua-platform"], path).toBe(`"${hints.platform}"`);
  }
}

function brandsOf({ brands }: Readonly<Record<string, unknown>>): string {
  if (!Array.isArray(brands)) return "";
  return brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(", ");
}
