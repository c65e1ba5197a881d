import { expect, test } from "vitest";
import { Pilothouse } from "../../sdk/typescript/src/index.ts";
import { answers, startMisbehaving } from "../sdk/misbehaving-server.ts";
import { referenceSamples, sampleAnswer, sampleSession } from "./reference-samples.ts";

const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor;

test("TypeScript samples of the reference page send the requests of their operations", async () => {
  await using server = await startMisbehaving(answers(200, sampleAnswer));
  const client = new Pilothouse({ apiKey: "k", baseUrl: server.url });
  const session = await client.sessions.get(sampleSession);
  const samples = referenceSamples();
  expect(samples.length).toBeGreaterThan(80);
  for (const { typescript, line, body } of samples) {
    await new AsyncFunction("client", "session", "content", `{ ${typescript} }`)(client, session, "text");
    const received = server.received.at(-1);
    expect({ line: received?.line, body: received?.body }, typescript).toEqual({
      line,
      body: body === undefined ? expect.stringMatching(/^(?:text|\{\})?$/) : expect.any(String),
    });
    if (body !== undefined) expect(JSON.parse(received?.body ?? ""), typescript).toEqual(body);
  }
});
