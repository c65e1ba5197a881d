import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { go } from "../support/livekit-build.ts";

const root = join(import.meta.dirname, "../..");
const plugins = [
  "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
  "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1",
];

let scene: OwnCdpScene;
let workshop: Workshop;

beforeAll(async () => {
  if (go === undefined) throw new Error("expected Go 1.21 or later in the PATH or in /usr/local/go/bin, got none");
  // Modules are writable so that the folder can be removed.
  workshop = await openWorkshop("go/bin", (directory) => ({ GOPATH: join(directory, "go"), GOFLAGS: "-modcacherw" }));
  for (const plugin of plugins) await workshop.run("go", "install", plugin);
  for (const folder of ["examples/go", "proto"]) {
    await cp(join(root, folder), join(workshop.directory, folder), { recursive: true });
  }
  scene = await startCdpScene();
}, 600_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await workshop?.[Symbol.asyncDispose]();
});

test("the Go example saves a picture over gRPC", async () => {
  const { run, directory } = workshop;
  const example = join(directory, "examples/go");
  await run("sh", "-c", `cd ${example} && ${join(root, "node_modules/.bin/buf")} generate`);
  await run("go", "-C", example, "vet", "./...");
  const { grpcAddress, key } = scene.service;
  const settings = [`GRPC_ADDRESS=${grpcAddress}`, `PILOTHOUSE_API_KEY=${key}`];
  const arguments_ = [scene.site.url("/form.html"), join(directory, "page.png")];
  const { stdout } = await run("env", ...settings, "go", "-C", example, "run", ".", ...arguments_);
  expect(stdout).toBe("Form\n");
  expect((await readFile(join(directory, "page.png"))).subarray(1, 4).toString()).toBe("PNG");
  expect((await scene.rest("/v1/sessions?status=live")).body.data).toEqual([]);
}, 600_000);
