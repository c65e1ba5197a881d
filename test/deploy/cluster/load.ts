import { get } from "node:http";
import { sleep } from "../../../src/platform/bounded-wait.ts";
import { restClient } from "../../support/rest.ts";

/* Holds load on a service until its input ends, and prints what failed as JSON: load.ts URL KEY SESSIONS */

const [url = "", key = "", count = "1"] = process.argv.slice(2);
const connectionsPerSecond = 40;
const rest = restClient({ url, key });
const failures: string[] = [];
let connections = 0;
let commands = 0;
let isOver = false;

/** Sends a request over a connection of its own. Nothing is repeated. */
function connectOnce(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const fail = (reason: string) => failures.push(`connection: ${reason}`);
  const request = get(`${url}/v1/sessions?limit=1`, {
    agent: false,
    headers: { authorization: `Bearer ${key}` },
    timeout: 10_000,
  });
  request.on("response", (response) => {
    if (response.statusCode !== 200) fail(`status ${response.statusCode}`);
    response.resume().once("close", resolve);
  });
  request.on("timeout", () => request.destroy(new Error("no answer for 10 s")));
  request.on("error", (error) => {
    fail(error.message);
    resolve();
  });
  connections += 1;
  return promise;
}

async function connectSteadily(): Promise<void> {
  const open = new Set<Promise<void>>();
  while (!isOver) {
    const one = connectOnce().finally(() => open.delete(one));
    open.add(one);
    await sleep(1_000 / connectionsPerSecond);
  }
  await Promise.all(open);
}

/** Drives one session. A command is repeated once if its gateway closed the connection or refused it with 503. */
async function drive(id: string): Promise<void> {
  const command = () => rest(`/v1/sessions/${id}/navigate`, { url: "about:blank" });
  while (!isOver) {
    let answer = await command().catch(() => undefined);
    if (!answer || answer.status === 503) answer = await command().catch(() => undefined);
    commands += 1;
    if (answer?.status !== 200) failures.push(`command: ${answer?.status} ${JSON.stringify(answer?.body)}`);
    await sleep(250);
  }
  const { body } = await rest(`/v1/sessions/${id}`);
  if (body.status !== "live") failures.push(`session: ${body.status} ${body.ended_reason}`);
  await rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
}

async function createSession(): Promise<string> {
  const { status, body } = await rest("/v1/sessions", { timeout_seconds: 600 });
  if (status !== 201) throw new Error(`the session was refused with ${status}: ${JSON.stringify(body)}`);
  return body.id;
}

const ids = await Promise.all(Array.from({ length: Number(count) }, createSession));
process.stdout.write("started\n");
process.stdin.resume().once("end", () => {
  isOver = true;
});
await Promise.all([connectSteadily(), ...ids.map(drive)]);
process.stdout.write(`${JSON.stringify({ connections, commands, failures })}\n`);
