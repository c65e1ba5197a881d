// Asks Stagehand about a page: OPENAI_API_KEY=... node ask-stagehand.ts https://shop.example/products
import { Stagehand } from "@browserbasehq/stagehand";
import { Pilothouse } from "@pilothouse/sdk";
import { z } from "zod";

const [url = ""] = process.argv.slice(2);
const { LLM_MODEL = "openai/gpt-4.1", OPENAI_API_KEY = "", OPENAI_BASE_URL = "" } = process.env;
const client = new Pilothouse();
await using session = await client.sessions.create();
const stagehand = new Stagehand({
  env: "LOCAL",
  localBrowserLaunchOptions: { cdpUrl: await session.cdpUrl() },
  model: { modelName: LLM_MODEL, apiKey: OPENAI_API_KEY, ...(OPENAI_BASE_URL && { baseURL: OPENAI_BASE_URL }) },
  verbose: 0,
});
await stagehand.init();
await stagehand.context.pages()[0]?.goto(url);
const product = z.object({ name: z.string(), price: z.number() });
const { name, price } = await stagehand.extract("the cheapest product", product);
console.log(`${name} costs ${price}`);
await stagehand.close();
