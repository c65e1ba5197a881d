import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { readProcess } from "../../workers/isolation/processes.ts";
import { type Case, http1 } from "./bytes.ts";
import { honestHttp2 } from "./http2-cases.ts";
import { send } from "./send.ts";
import type { EntryPoint, Part, World } from "./world.ts";

/** Milliseconds for a plain response. Late ones are retried, as other processes may cause the delay. */
const answerMs = 1_000;
const attempts = 5;
/** Milliseconds until the streams of disconnected clients are no longer counted. */
const releaseMs = 25_000;

const get = (url: string): Case => ({
  name: "a plain request",
  steps: [http1(`GET ${url} HTTP/1.1`, ["Host: localhost", "Connection: close"])],
  leave: "wait",
});
/** Host name with the bytes by which a SOCKS proxy opens a tunnel. */
const socksHost = "x05000001000000000000x.example";
const page = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").toString("hex");

/** Checks the state of all processes. */
export class Judge {
  readonly #world: World;
  readonly #began = new Map<Part, { process: string; read: number }>();

  readonly #uncaught = new Map<Part, number>();

  constructor(world: World) {
    this.#world = world;
    this.accept();
  }

  /** Takes the current processes and logs as the baseline. */
  accept(): void {
    for (const part of this.#world.parts) {
      this.#began.set(part, { process: identityOf(part), read: part.output().length });
    }
  }

  /** Returns the processes that have exited or restarted since the baseline. */
  ended(): Part[] {
    return this.#world.parts.filter((part) => this.#began.get(part)?.process !== identityOf(part));
  }

  /** Returns all faults. `answers` are the responses to the cases sent since the last check. */
  async verdict(answers: readonly Buffer[]): Promise<string[]> {
    const { parts, entryPoints } = this.#world;
    const failed = answers.find(hasFailed);
    const ended = this.ended().map((part) => `the ${part.name} has ended: ${part.output().slice(-2_000)}`);
    if (ended.length > 0) return ended;
    const silent = await Promise.all(entryPoints.map((entryPoint) => this.#isSilent(entryPoint)));
    const wedged = entryPoints
      .filter((_transport, index) => silent[index])
      .map(({ name }) => `${name} does not answer`);
    if (wedged.length > 0) return wedged;
    const counted = await Promise.all(parts.map((part) => this.#countedWrong(part)));
    const status = await this.#world.sessionStatus();
    return [
      ...(failed ? [`an answer has status 500: ${failed.toString("latin1").slice(0, 1_000)}`] : []),
      ...counted.flat(),
      ...parts.flatMap((part) => this.#complaints(part)),
      ...(status === "live" ? [] : [`the session is ${status}`]),
    ];
  }

  /** Returns the errors that a process has logged since the baseline. */
  #complaints(part: Part): string[] {
    const lines = part.output().slice(this.#began.get(part)?.read).split("\n");
    const wrong = lines.filter((line) => /"level":[56]0|UnhandledPromiseRejection|Uncaught/.test(line));
    const byMessage = new Map(wrong.map((line) => [/"message":"[^"]*/.exec(line)?.[0], line.slice(0, 1_500)]));
    return [...byMessage.values()].map((line) => `the ${part.name} has logged ${line}`);
  }

  /** Returns open streams without a client, and uncaught errors, from a process's metrics. */
  async #countedWrong(part: Part): Promise<string[]> {
    const { metrics: url, name } = part;
    if (url === undefined) return [];
    let lines: string[] = [];
    const sumOf = (metric: string): number =>
      lines.reduce((sum, line) => (line.startsWith(metric) ? sum + Number(line.split(" ").at(-1)) : sum), 0);
    const isReleased = await waitUntil(
      async () => {
        const answer = await fetch(url, { signal: AbortSignal.timeout(attempts * answerMs) });
        lines = (await answer.text()).split("\n");
        return sumOf("pilothouse_open_streams") === 0;
      },
      { timeout: releaseMs, every: 50 },
    );
    const open = lines.filter((line) => /^pilothouse_open_streams.* [^0]/.test(line));
    const uncaught = sumOf("pilothouse_uncaught_errors_total");
    const more = uncaught - (this.#uncaught.get(part) ?? 0);
    this.#uncaught.set(part, uncaught);
    return [
      ...(isReleased ? [] : [`the ${name} still counts ${open.join(", ")}`]),
      ...(more > 0 ? [`the ${name} has ${more} more uncaught errors`] : []),
    ];
  }

  async #isSilent(entryPoint: EntryPoint): Promise<boolean> {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const answer = await send(entryPoint, this.#plain(entryPoint), answerMs);
      if (hasAnswered(entryPoint, answer)) return false;
    }
    return true;
  }

  #plain({ speaks, name }: EntryPoint): Case {
    if (speaks === "grpc") return { name: "a plain call", steps: honestHttp2.grpc, leave: "wait" };
    const { site, clientHello } = this.#world.facts;
    if (speaks === "tls") return { name: "a ClientHello", steps: [clientHello], leave: "wait" };
    const hosts: Readonly<Record<string, string>> = {
      "relay direct": site,
      "relay http": "public.example",
      "relay socks5": socksHost,
    };
    if (speaks === "relay") return get(`http://${hosts[name]}/x${page}x`);
    return get(name === "the demo's port" ? "/" : speaks === "internal" ? "/healthz" : "/v1/status");
  }
}

function identityOf(part: Part): string {
  const pid = part.pid() ?? 0;
  return `${pid} since ${readProcess(pid)?.startedAt}`;
}

/** Returns whether a port has responded to a plain request. */
function hasAnswered({ speaks }: EntryPoint, answer: Buffer): boolean {
  if (speaks === "grpc") return framesOf(answer).some(({ type }) => type === 1);
  // A handshake record.
  if (speaks === "tls") return answer[0] === 22;
  return answer.toString("latin1").startsWith("HTTP/1.1 200 ");
}

/** Returns whether a response of either HTTP version has the status 500. */
function hasFailed(answer: Buffer): boolean {
  if (answer.toString("latin1", 0, 5) === "HTTP/") return /(?:^|\n)HTTP\/1\.1 500 /.test(answer.toString("latin1"));
  // Entry 14 of HPACK's static table is `:status: 500`.
  return framesOf(answer).some(({ type, body }) => type === 1 && body[0] === 0x8e);
}

/** Parses the frames of an HTTP/2 connection. */
function framesOf(bytes: Buffer): { type: number; body: Buffer }[] {
  const frames = [];
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3);
    frames.push({ type: bytes[at + 3] ?? 0, body: bytes.subarray(at + 9, at + 9 + length) });
    at += 9 + length;
  }
  return frames;
}
