import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import type { Answer } from "../../../test/support/rest.ts";
import type { LoadScene } from "./load-scene.ts";

/** Idle timeout in seconds, the shortest allowed. */
const idleSeconds = 10;

/** Behaviour of a client. Throws `UnexpectedAnswer` if the service does not respond as specified. */
export type SessionKind = (scene: LoadScene) => Promise<void>;

/** A response that violates the specification. */
export class UnexpectedAnswer extends Error {
  override readonly name = "UnexpectedAnswer";
  /** Slug of the error, or the status of other responses. */
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

/** Uses a session normally. */
export const ordinary: SessionKind = async (scene) => {
  const session = await begin(scene);
  await drive(scene, session);
  await end(scene, session);
};

/** Uses a session in full Chromium normally. */
export const inChromium: SessionKind = async (scene) => {
  const session = await begin(scene, { runtime: "chromium" });
  await drive(scene, session);
  await end(scene, session);
};

/** Sends requests that are refused or fail. */
export const refused: SessionKind = async (scene) => {
  const { rest } = scene;
  expectStatus("create with an unknown field", await rest("/v1/sessions", { nonsense: 1 }), 400);
  expectStatus("create of an unknown device", await rest("/v1/sessions", { archetype: "abacus" }), 400);
  const session = await begin(scene);
  const answers = [
    expectStatus("navigate to a closed port", await rest(`${session}/navigate`, { url: "http://127.0.0.1:1/" }), 502),
    expectStatus(
      "navigate to an unknown host",
      await rest(`${session}/navigate`, { url: "http://nowhere.invalid/" }),
      502,
    ),
    await rest(`${session}/interact`, { action: { kind: "tap", selector: "<<<" } }),
    await rest(`${session}/interact`, { action: { kind: "tap", selector: "#none" }, timeout_ms: 200 }),
    await rest(`${session}/wait`, { condition: { kind: "selector", selector: "#none" }, timeout_ms: 200 }),
  ];
  const unexpected = answers.find(({ status }) => status < 400 || status === 500);
  if (unexpected) throw new UnexpectedAnswer("a refused request", unexpected);
  await end(scene, session);
  expectStatus("destroy twice", await rest(session, undefined, { method: "DELETE" }), 410);
};

/** Disconnects while its session is launched, and does not destroy the session. */
export const disconnectedAtLaunch: SessionKind = async ({ rest }) => {
  const signal = AbortSignal.timeout(60);
  const body = { idle_timeout_seconds: idleSeconds };
  await rest("/v1/sessions", body, { signal }).catch(() => undefined);
};

/** Disconnects during a command, an event stream, a drive stream and a capture. */
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

/** Kills its page's process, navigates again, and then kills the browser. */
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

/** Does nothing until the idle timeout. */
export const abandoned: SessionKind = async (scene) => {
  await begin(scene, { idle_timeout_seconds: idleSeconds });
};

function kill(pid: number): void {
  if (pid <= 1) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}
