import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";

const root = join(import.meta.dirname, "../..");

let scene: OwnCdpScene;
let workshop: Workshop;

beforeAll(async () => {
  workshop = await openWorkshop("bin");
  for (const folder of ["examples/java/pom.xml", "examples/java/src", "proto"]) {
    await cp(join(root, folder), join(workshop.directory, folder), { recursive: true });
  }
  scene = await startCdpScene();
}, 600_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await workshop?.[Symbol.asyncDispose]();
});

test("the Java example saves a picture over gRPC", async () => {
  const { run, directory } = workshop;
  const { grpcAddress, key } = scene.service;
  const settings = [`GRPC_ADDRESS=${grpcAddress}`, `PILOTHOUSE_API_KEY=${key}`];
  const picture = join(directory, "page.png");
  const example = ["-B", "-q", "-f", join(directory, "examples/java/pom.xml"), "compile", "exec:java"];
  const arguments_ = `-Dexec.args=${scene.site.url("/form.html")} ${picture}`;
  const { stdout } = await run("env", ...settings, "mvn", ...example, arguments_);
  expect(stdout).toContain("Form\n");
  expect((await readFile(picture)).subarray(1, 4).toString()).toBe("PNG");
  expect((await scene.rest("/v1/sessions?status=live")).body.data).toEqual([]);
}, 600_000);
