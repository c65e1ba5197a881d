import { afterAll, beforeAll, expect, test } from "vitest";
import { longTest } from "../support/long-test.ts";
import { ordinaryHosts, ordinaryPages } from "../support/ordinary-pages.ts";
import { resolveToLoopback, VendorSite, vendorSiteFlags } from "../support/vendor-site.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

/** The worker checks pages with a vendor's scripts for 4.5 s. */
const lookedAtMs = 6_000;

const entries = Object.entries(ordinaryPages).map(([title, body], index) => {
  const page = { path: `/ordinary-${index}`, title, html: `<!DOCTYPE html><title>${title}</title><body>${body}` };
  return { ...page, isVendors: /https:|cdn-cgi/.test(body) };
});
const vendors = entries.filter(({ isVendors }) => isVendors);
const opener = `<!DOCTYPE html><title>Opener</title><button onclick="for (const path of
  ${JSON.stringify(vendors.map(({ path }) => path)).replaceAll('"', "'")}) open(path, '_blank', 'popup')">open</button>`;

let site: VendorSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  const pages = entries.map(({ path, html }) => [path, { html }] as const);
  site = await new VendorSite(new Map([...pages, ["/opener", { html: opener }]])).start();
  worker = await WorkerUnderTest.start(site.allow(ordinaryHosts), {
    browserFlags: vendorSiteFlags,
    resolve: resolveToLoopback,
  });
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

/** False detections with the names of their pages. */
function mistaken(): unknown[] {
  const seen = worker.happenings.flatMap(({ event }) => (event.case === "challengeSeen" ? [event.value] : []));
  return seen.map(({ challenge, url }) => [challenge, entries.find(({ path }) => url?.endsWith(path))?.title]);
}

longTest(
  "detects no bot check on 50 ordinary pages",
  async () => {
    expect(entries).toHaveLength(50);
    const session = await worker.open();
    for (const { path } of entries) {
      await session.navigate({ url: site.url(path) });
      expect(mistaken()).toEqual([]);
    }
  },
  60_000,
);

test.concurrent("detects no bot check on an open page with a vendor's frames and scripts", async () => {
  const session = await worker.open();
  await session.navigate({ url: site.url("/opener") });
  await session.interact({ action: { case: "tap", value: { selector: "button" } } });
  const never = { case: "text" as const, value: { text: "nothing says this" } };
  const slug = await session.wait({ condition: never, timeoutMs: lookedAtMs }).catch((failure) => failure.slug);
  expect(mistaken()).toEqual([]);
  expect(slug).toBe("session-timeout");
  expect((await session.state()).pages).toHaveLength(vendors.length + 1);
}, 60_000);
