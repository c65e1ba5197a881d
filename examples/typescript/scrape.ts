// Prints the products of all pages of a shop as lines of JSON: node scrape.ts https://shop.example/products
import { Pilothouse } from "@pilothouse/sdk";

const [firstPage = ""] = process.argv.slice(2);
const client = new Pilothouse();
await using session = await client.sessions.create({ block: { kinds: ["image", "media", "font"] } });
const browser = await session.connect("playwright");
const page = browser.contexts()[0]?.pages()[0];
if (!page) throw new Error("expected a page in the session, got none");

for (let url: string | undefined = firstPage; url !== undefined; ) {
  await page.goto(url);
  for (const product of await page.locator("article").all()) {
    const name = await product.getByRole("heading").textContent();
    const price = Number(await product.locator("data").getAttribute("value"));
    console.log(JSON.stringify({ name, price }));
  }
  const [next] = await page.locator("a[rel=next]").all();
  const path = await next?.getAttribute("href");
  url = path ? new URL(path, page.url()).href : undefined;
}
await browser.close();
