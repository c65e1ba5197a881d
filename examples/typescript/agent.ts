// Runs an agent whose answer matches a schema: LLM_KEY=... node agent.ts https://shop.example/products
import { Pilothouse } from "@pilothouse/sdk";

interface Product {
  readonly name: string;
  readonly price: number;
}

const [url = ""] = process.argv.slice(2);
const { LLM_KEY = "", LLM_MODEL = "anthropic/claude-haiku-4-5" } = process.env;
const client = new Pilothouse();
const { output } = await client.agents.run<Product>(`Find the cheapest product on ${url}.`, {
  schema: {
    type: "object",
    properties: { name: { type: "string" }, price: { type: "number" } },
    required: ["name", "price"],
  },
  llmKey: LLM_KEY,
  session: { model: LLM_MODEL, limits: { steps: 20 } },
  onStep: ({ role, content }) => console.error(role, content.kind),
});
console.log(`${output.name} costs ${output.price}`);
