import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { borrowLendScene, type LendScene } from "../support/lend-scene.ts";

const run = promisify(execFile);
const compiler = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
const strict = ["--strict", "--noUncheckedIndexedAccess", "--noEmit", "--module", "preserve", "--target", "esnext"];
const journey = `
import { createClient } from "./generated/client";
import { createSession, destroySession, getSession } from "./generated/sdk.gen";

export async function journey(baseUrl: string, auth: string) {
  const client = createClient({ baseUrl, auth });
  const { data: session } = await createSession({ client, body: { archetype: "pixel-7" } });
  if (!session) throw new Error("no session was created");
  await destroySession({ client, path: { id: session.id } });
  const { error } = await getSession({ client, path: { id: session.id } });
  if (error?.status !== 410) throw new Error("the session has not ended");
  return { archetype: session.archetype, type: error.type, reason: error.ended_reason };
}
`;
let directory: string;
let scene: LendScene | undefined;

// The generator is a package of its own: it needs TypeScript 5, whose API the project's TypeScript 7 does not have.
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-client-"));
  await cp(join(import.meta.dirname, "generator"), directory, { recursive: true });
  await run("npm", ["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: directory });
  scene = await borrowLendScene();
}, 180_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

test("a TypeScript client generated from the served document compiles, drives a session and reads a problem", async () => {
  if (!scene) throw new Error("the service is not set up");
  const { url, key } = scene.service;
  const generator = join(directory, "node_modules/@hey-api/openapi-ts/bin/run.js");
  await run(process.execPath, [generator, "-i", `${url}/v1/openapi.json`, "-o", "generated"], { cwd: directory });
  await writeFile(join(directory, "journey.ts"), journey);
  const compiled = run(process.execPath, [compiler, ...strict, "journey.ts"], { cwd: directory });
  const faults = await compiled.then(
    () => "",
    (failure) => failure.stdout,
  );
  expect(faults).toBe("");
  const client = await import(join(directory, "journey.ts"));
  expect(await client.journey(url, key)).toEqual({
    archetype: "pixel-7",
    type: expect.stringMatching(/\/session-destroyed$/),
    reason: "destroyed",
  });
}, 120_000);
