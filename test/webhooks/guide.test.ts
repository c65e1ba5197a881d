import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSender } from "../../src/webhooks/sender.ts";
import { signatureHeaders } from "../../src/webhooks/webhook-signature.ts";
import { clockAt } from "../support/clock-at.ts";
import { blockNamesOf, blocksOf } from "../support/guide-blocks.ts";
import { startTestGateway } from "../support/test-gateway.ts";

const secret = `whsec_${"c2Vj".repeat(8)}`;
const other = `whsec_${"b3Ro".repeat(8)}`;
const event = {
  id: "evt_01jd2z5r1v7k9m3q8t4w6x0y2b",
  type: "session.completed",
  createdAt: new Date(),
  body: '{"id":"evt_01jd2z5r1v7k9m3q8t4w6x0y2b","type":"session.completed","data":{"text":"Grüße"}}',
};

const programs = [
  { heading: "TypeScript", language: "ts", command: [process.execPath, "--no-warnings"] },
  { heading: "Python", language: "python", command: ["python3"] },
] as const;

describe.each(programs)("the guide's receiver in $heading", ({ heading, language, command: [command, ...args] }) => {
  const directory = mkdtempSync(join(tmpdir(), "receiver-"));
  const file = join(directory, `receive.${language}`);
  let port = 0;
  let lines: AsyncIterator<string>;
  let end: () => Promise<unknown>;

  beforeAll(async () => {
    writeFileSync(file, blocksOf("webhooks.md", language).get(heading) ?? "");
    const env = { ...process.env, WEBHOOK_SECRET: secret, PORT: "0" };
    const program = spawn(command, [...args, file], { env, stdio: ["ignore", "pipe", "ignore"] });
    const closed = once(program, "close");
    end = async () => {
      program.kill();
      await closed;
    };
    lines = createInterface(program.stdout)[Symbol.asyncIterator]();
    const { value } = await lines.next();
    port = Number(/(?:port: |', )(\d+)/.exec(value)?.[1]);
  });
  afterAll(async () => {
    await end?.();
    rmSync(directory, { recursive: true });
  });

  /** Sends the event with a timestamp `age` seconds in the past. Returns the receiver's status. */
  async function deliver(secrets: readonly string[], age = 0): Promise<number | undefined> {
    const clock = clockAt(() => Date.now() - age * 1_000);
    const sender = createSender({ config: { webhookAllow: [`127.0.0.1:${port}`] }, clock });
    const attempt = { url: `http://127.0.0.1:${port}/hooks`, secrets, event };
    const { status } = await sender.send(attempt, AbortSignal.timeout(20_000));
    sender.stop();
    return status;
  }

  test("accepts deliveries signed with either secret", async () => {
    expect(await deliver([secret])).toBe(204);
    expect((await lines.next()).value).toBe(`session.completed ${event.id}`);
    expect(await deliver([other, secret])).toBe(204);
    expect(await deliver([secret, other])).toBe(204);
    expect(await deliver([secret], 280)).toBe(204);
    expect(await deliver([secret], -280)).toBe(204);
    // With -300, a second may pass before the receiver reads the timestamp.
    expect(await deliver([secret], -300)).toBe(204);
  });

  test("refuses other secrets, and timestamps more than 300 s off", async () => {
    expect(await deliver([other])).toBe(400);
    expect(await deliver([secret], 301)).toBe(400);
    expect(await deliver([secret], -310)).toBe(400);
  });

  test("refuses a changed byte and invalid headers", async () => {
    const timestamp = Math.floor(Date.now() / 1_000);
    const post = async (header: string | undefined, body: string) => {
      const headers = header === undefined ? {} : { "x-service-signature": header };
      return (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status;
    };
    const header = signatureHeaders([secret], { id: event.id, body: event.body, timestamp })["X-Service-Signature"];
    expect(await post(header, event.body)).toBe(204);
    expect(await post(header, event.body.replace("completed", "Completed"))).toBe(400);
    const digest = header?.split("v1=")[1] ?? "";
    const later = `t=${timestamp + 1},v1=${digest}`;
    for (const wrong of [undefined, "", "t=", "v1=", `v1=${digest}`, later, `t=${timestamp},v1=`, `t=x,v1=${digest}`]) {
      expect([wrong, await post(wrong, event.body)]).toEqual([wrong, 400]);
    }
  });
});

test("every block of the guide is tested", () => {
  const programsOfGuide = programs.map(({ heading, language }) => `${heading} (${language})`);
  expect(blockNamesOf("webhooks.md")).toEqual([
    "The request (json)",
    ...programsOfGuide,
    "Develop on your own machine (sh)",
  ]);
});

test("the guide is served next to the reference", async () => {
  await using gateway = await startTestGateway();
  const served = await fetch(`${gateway.url}/docs/webhooks.md`);
  expect(await served.text()).toBe(readFileSync(new URL("../../docs/webhooks.md", import.meta.url), "utf8"));
}, 60_000);
