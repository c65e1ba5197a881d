import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import type { Answer } from "../../../test/support/rest.ts";
import type { LoadScene } from "./load-scene.ts";

/** Seconds until a session ends that nobody uses; the least that a client may ask for. */
const idleSeconds = 10;

/** What a client does with a session. Throws `UnexpectedAnswer` when the service does not do its part. */
export type SessionKind = (scene: LoadScene) => Promise<void>;

/** An answer that a well-behaved service would not have given. */
export class UnexpectedAnswer extends Error {
  override readonly name = "UnexpectedAnswer";
  /** The error's slug, or the status of an answer that is none. */
  readonly slug: string;

  constructor(what: string, { status, body }: Answer) {
    const slug = typeof body?.type === "string" ? body.type.split("/").at(-1) : String(status);
    super(`${what}: ${status} ${slug} ${body?.detail ?? ""}`);
    this.slug = slug;
  }
}

function expectStatus(what: string, answer: Answer, ...statuses: readonly number[]): Answer {
  if (!statuses.includes(answer.status)) throw new UnexpectedAnswer(what, answer);
  return answer;
}

async function begin({ rest }: LoadScene, body: object = {}): Promise<string> {
  const request = { idle_timeout_seconds: idleSeconds * 6, ...body };
  return `/v1/sessions/${expectStatus("create", await rest("/v1/sessions", request), 201).body.id}`;
}

async function end({ rest }: LoadScene, session: string): Promise<void> {
  expectStatus("destroy", await rest(session, undefined, { method: "DELETE" }), 204);
}

async function drive({ rest, site }: LoadScene, session: string): Promise<void> {
  expectStatus("navigate", await rest(`${session}/navigate`, { url: site.url("/form.html") }), 200);
  expectStatus("capture", await rest(`${session}/capture`, { kind: "screenshot" }), 200);
  const action = { kind: "tap", selector: "body" };
  expectStatus("interact", await rest(`${session}/interact`, { action }), 200);
}

/** Uses a session as it is meant. */
export const ordinary: SessionKind = async (scene) => {
  const session = await begin(scene);
  await drive(scene, session);
  await end(scene, session);
};

/** The same in full Chromium. */
export const inChromium: SessionKind = async (scene) => {
  const session = await begin(scene, { runtime: "chromium" });
  await drive(scene, session);
  await end(scene, session);
};

/** Asks for everything that is refused or fails. */
export const mistaken: SessionKind = async (scene) => {
  const { rest } = scene;
  expectStatus("create with an unknown field", await rest("/v1/sessions", { nonsense: 1 }), 400);
  expectStatus("create of an unknown device", await rest("/v1/sessions", { archetype: "abacus" }), 400);
  const session = await begin(scene);
  const answers = [
    expectStatus("navigate to nobody", await rest(`${session}/navigate`, { url: "http://127.0.0.1:1/" }), 502),
    expectStatus("navigate to no page", await rest(`${session}/navigate`, { url: "http://nowhere.invalid/" }), 502),
    await rest(`${session}/interact`, { action: { kind: "tap", selector: "<<<" } }),
    await rest(`${session}/interact`, { action: { kind: "tap", selector: "#none" }, timeout_ms: 200 }),
    await rest(`${session}/wait`, { condition: { kind: "selector", selector: "#none" }, timeout_ms: 200 }),
  ];
  const odd = answers.find(({ status }) => status < 400 || status === 500);
  if (odd) throw new UnexpectedAnswer("a mistake", odd);
  await end(scene, session);
  expectStatus("destroy twice", await rest(session, undefined, { method: "DELETE" }), 410);
};

/** Goes away while its session is launched: nobody destroys that. */
export const impatient: SessionKind = async ({ rest }) => {
  const signal = AbortSignal.timeout(60);
  const body = { idle_timeout_seconds: idleSeconds };
  await rest("/v1/sessions", body, { signal }).catch(() => undefined);
};

/** Breaks the connection in the middle of a command, a stream of events, a drive and a capture. */
export const brokenOff: SessionKind = async (scene) => {
  const { rest, site, service } = scene;
  const session = await begin(scene);
  const cut = async (path: string, body?: object) => {
    const leave = new AbortController();
    const answer = rest(`${session}/${path}`, body, { signal: leave.signal }).catch(() => undefined);
    await delay(100);
    leave.abort();
    await answer;
  };
  await cut("navigate", { url: site.url("/silent") });
  await cut("events");
  await cut("wait", { condition: { kind: "selector", selector: "#never" } });
  expectStatus("navigate", await rest(`${session}/navigate`, { url: site.url("/text?megabytes=8") }), 200);
  await cut("capture", { kind: "dom_snapshot" });
  const url = `${service.url.replace("http", "ws")}${session}/drive`;
  const socket = new WebSocket(url, ["pilothouse.v1", `bearer.${service.key}`]);
  socket.on("error", () => undefined);
  socket.once("open", () => socket.send(JSON.stringify({ id: "1", navigate: { url: site.url("/silent") } })));
  await delay(200);
  socket.terminate();
  await end(scene, session);
};

/** Loses its page's process, navigates again, and then loses the whole browser. */
export const killed: SessionKind = async (scene) => {
  const { rest, site } = scene;
  const session = await begin(scene);
  const [browser, ...helpers] = await scene.browserOf(session);
  for (const { pid, command } of helpers) if (command.includes("--type=renderer")) kill(pid);
  expectStatus("navigate", await rest(`${session}/navigate`, { url: site.url("/plain.html") }), 200, 502);
  kill(browser?.pid ?? 0);
  const answer = await rest(`${session}/wait`, { condition: { kind: "selector", selector: "#never" } });
  expectStatus("command to a killed browser", answer, 410, 502);
};

/** Is left alone until its idle time is over. */
export const abandoned: SessionKind = async (scene) => {
  await begin(scene, { idle_timeout_seconds: idleSeconds });
};

function kill(pid: number): void {
  if (pid <= 1) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
