import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { Pilothouse } from "../../sdk/typescript/src/index.ts";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { Client } from "./client.ts";
import { interleave, type Measure, median, spread } from "./samples.ts";
import { startSite } from "./site.ts";

const root = join(import.meta.dirname, "../..");
const addedMs = 30;

/** Milliseconds between sessions, in which the pool refills. */
const apartMs = 2_000;

/** Takes a picture of a page in a new session. Returns a function that ends the session. */
type Taking = () => Promise<() => Promise<unknown>>;

/** The first lines of the README of each SDK, against the same requests without it. */
export const firstLines: Bench = {
  name: "first-lines",
  title: `from create() to a saved screenshot by each SDK, sessions ${apartMs / 1_000} s apart, against raw HTTP in the same language`,
  async run(scale): Promise<Row[]> {
    const directory = await mkdtemp(join(tmpdir(), "pilothouse-bench-"));
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const picture = join(directory, "page.png");
      await using python = await startPython(service, site.formUrl, picture);
      const samples = await interleave(
        {
          sdk: measure(bySdk(service, site.formUrl, picture)),
          raw: measure(byRequests(client, site.formUrl, picture)),
          pythonSdk: python.measure("sdk"),
          pythonRaw: python.measure("raw"),
        },
        { rounds: scale.of(20, 5), warmUp: scale.of(5, 2) },
      );
      return [toRow("TypeScript", samples.sdk, samples.raw), toRow("Python", samples.pythonSdk, samples.pythonRaw)];
    } finally {
      await service.stop();
      await rm(directory, { recursive: true, force: true });
    }
  },
};

function bySdk({ key, url }: Service, page: string, picture: string): Taking {
  const client = new Pilothouse({ apiKey: key, baseUrl: url });
  return async () => {
    const session = await client.sessions.create();
    await session.goto(page);
    await writeFile(picture, await session.screenshot());
    return () => session.end();
  };
}

function byRequests(client: Client, url: string, picture: string): Taking {
  return async () => {
    const session = await client.create();
    await client.post(`${session}/navigate`, { url });
    const { data } = await client.post<{ data: string }>(`${session}/capture`, { kind: "screenshot" });
    await writeFile(picture, Buffer.from(data, "base64"));
    return () => client.destroy(session);
  };
}

function measure(take: Taking): Measure {
  return async () => {
    await delay(apartMs);
    const beganAt = performance.now();
    const end = await take();
    const spent = performance.now() - beganAt;
    await end();
    return spent;
  };
}

/** Starts a program that takes samples in Python, with the packages of the SDK's generator. */
async function startPython({ key, url }: Service, page: string, picture: string) {
  await promisify(execFile)("sh", ["tools/generate-python-sdk.sh"], { cwd: root });
  const program = spawn(
    join(root, "sdk/python/.venv/bin/python"),
    [join(import.meta.dirname, "first-lines.py"), page, picture],
    {
      env: { PYTHONPATH: join(root, "sdk/python/src"), PILOTHOUSE_API_KEY: key, PILOTHOUSE_URL: url },
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  return {
    measure:
      (side: "sdk" | "raw"): Measure =>
      async () => {
        await delay(apartMs);
        program.stdin.write(`${side}\n`);
        const { value, done } = await lines.next();
        if (done) throw new Error("the Python program has ended; its error is above");
        return Number(value);
      },
    async [Symbol.asyncDispose]() {
      if (program.exitCode !== null) return;
      program.stdin.end();
      await once(program, "exit");
    },
  };
}

function toRow(language: string, ours: number[], bare: number[]): Row {
  const verdict = boundVerdict(median(ours) - median(bare), addedMs, "ms more");
  return { what: `${language}: create, goto, screenshot, write`, ours: spread(ours), bare: spread(bare), verdict };
}
