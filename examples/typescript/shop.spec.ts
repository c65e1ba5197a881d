// Runs a Playwright suite, each test in a remote browser of its own: SHOP_URL=... npx playwright test shop.spec.ts

import { Pilothouse } from "@pilothouse/sdk";
import { test as base, expect } from "@playwright/test";

const client = new Pilothouse();
const { SHOP_URL = "" } = process.env;

const test = base.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright requires a pattern.
  page: async ({}, use) => {
    const session = await client.sessions.create();
    try {
      const browser = await session.connect("playwright");
      const page = browser.contexts()[0]?.pages()[0];
      if (!page) throw new Error("expected a page in the session, got none");
      await use(page);
      await browser.close();
    } finally {
      await session.end();
    }
  },
});

test("lists products", async ({ page }) => {
  await page.goto(`${SHOP_URL}/products`);
  await expect(page.getByRole("heading")).toHaveText(["Shirt 1", "Shirt 2"]);
});

test("shows the next page", async ({ page }) => {
  await page.goto(`${SHOP_URL}/products`);
  await page.getByRole("link", { name: "Next" }).click();
  await expect(page.getByRole("heading").first()).toHaveText("Shirt 3");
});
