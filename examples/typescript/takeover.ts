// Lets a person enter a second factor: BANK_PASSWORD=... node takeover.ts https://bank.example
import { Pilothouse } from "@pilothouse/sdk";

const [bank = ""] = process.argv.slice(2);
const client = new Pilothouse();
await using session = await client.sessions.create();

/** Resolves when a person has handed control back. While a person has control, calls that act return `conflict`. */
async function waitForHandback(): Promise<void> {
  for await (const event of session.events()) {
    if (event.type === "session.control_changed" && event.data.cause === "handback") return;
  }
  throw new Error("the session ended before a person handed control back");
}

await session.goto(`${bank}/login`);
await session.fill("[name=user]", "ada");
await session.fill("[name=password]", process.env.BANK_PASSWORD ?? "");
await session.tap("button");
await session.wait("[name=code]");
const handback = waitForHandback();
console.log(`Take control, enter the code, and hand back: ${await session.liveUrl({ control: true })}`);
await handback;
await session.wait("#account");
console.log((await session.state()).title);
