import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { freshEmail } from "../support/people.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { restClient } from "../support/rest.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";

let service: WarmService;
let site: FixtureSite;
let outbox: URL;
let browser: Browser;
/** Address of an e-mail in the list, long enough to wrap on narrow screens. */
const listed = `a-rather-long-name-of-a-person-${freshEmail()}`;

beforeAll(async () => {
  const [borrowed, launched] = await Promise.all([borrowService(), launchPlainBrowser()]);
  ({ service, site } = borrowed);
  browser = launched;
  const [link = ""] = /http:\S+\/dev\/mail\S+/.exec(borrowed.welcome) ?? [];
  outbox = new URL(link.replace(/^http:\/\/[^/]+/, service.url));
  const rest = restClient({ url: service.url, key: "" });
  await rest("/v1/auth/signup", { email: listed, password: "correct horse battery staple", name: "Ada" });
}, 90_000);
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await site?.stop();
});

test("the printed link shows the e-mails of a service without SMTP_URL", async () => {
  const email = freshEmail();
  const rest = restClient({ url: service.url, key: "" });
  const { status } = await rest("/v1/auth/signup", { email, password: "correct horse battery staple", name: "Ada" });
  expect(status).toBe(201);
  const { mails } = (await (await fetch(outbox)).json()) as { mails: Record<string, unknown>[] };
  const link = expect.stringMatching(/\/auth\/verify-email#\w+$/);
  // Other files have sent e-mails with the same service.
  expect(mails.filter(({ to }) => to === email)).toEqual([
    expect.objectContaining({ to: email, subject: "Verify your e-mail address", kind: "security", links: [link] }),
  ]);
  const page = await fetch(outbox, { headers: { accept: "text/html" } });
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  const path = /href="(\/dev\/mail\/[^"]+)"/.exec(await page.text())?.[1] ?? "";
  const mail = await fetch(new URL(path, service.url));
  expect(await mail.text()).toContain("Hello Ada,");
  expect(mail.headers.get("content-security-policy")).toContain("default-src 'none'");
});

test.each([320, 390, 768, 1280])("the list of e-mails fits a screen that is %d px wide", async (width) => {
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  await page.goto(outbox.href);
  const first = page.getByRole("listitem").filter({ hasText: listed });
  const link = await first.getByRole("link", { name: "Verify your e-mail address" }).boundingBox();
  expect(link?.height).toBeLessThan(40);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  await page.close();
});

test.each([
  ["without the key of the link", { key: "" }, {}],
  ["with another key", { key: "x".repeat(32) }, {}],
  ["through a proxy", {}, { "x-forwarded-for": "192.0.2.1" }],
  ["through a proxy that sends Forwarded", {}, { forwarded: "for=192.0.2.1" }],
])("the outbox refuses requests %s", async (_, query, headers) => {
  const url = new URL(outbox);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const answer = await fetch(url, { headers });
  expect(answer.ok).toBe(false);
  expect(await answer.text()).not.toContain("verify");
});
