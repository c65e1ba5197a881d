import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { makeDataDirectory } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { buildImage, hasPodman, limits, podman } from "../support/podman.ts";

const canRun = hasPodman("the images are");

/** Image to test. IMAGE names an existing one; otherwise the image is built. */
let image = process.env.IMAGE ?? "";

beforeAll(async () => {
  if (!canRun || image !== "") return;
  image = await buildImage("deploy/Dockerfile", ".", "all", "BROWSERS=chromium-headless-shell");
}, 1_800_000);

test.runIf(canRun)("the image without its profile exits with the commands to run", { timeout: 60_000 }, async () => {
  const docker = ["--security-opt", "seccomp=/usr/share/containers/seccomp.json", "--cap-drop", "all"];
  const started = podman("run", "--rm", ...limits, ...docker, "--network", "none", image);
  await expect(started).rejects.toThrow(/docker run --rm IMAGE seccomp > pilothouse-seccomp.json\n {2}docker run /);
});

test.runIf(canRun)("the image with its profile creates a session", { timeout: 180_000 }, async () => {
  const directory = await makeDataDirectory();
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const profile = join(directory, "seccomp.json");
  await writeFile(profile, await podman("run", "--rm", ...limits, "--network", "none", image, "seccomp"));
  const { PORT, GRPC_PORT, INTERNAL_PORT } = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = { HOST: "127.0.0.1", PORT, GRPC_PORT, INTERNAL_PORT };
  const env = Object.entries(variables).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const rights = ["--security-opt", `seccomp=${profile}`, "--cap-drop", "all", "--security-opt", "no-new-privileges"];
  const place = ["--read-only", "--tmpfs", "/tmp", "--network", "host"];
  const id = await podman("run", "--detach", ...limits, ...rights, ...place, ...env, image);
  onTestFinished(() => podman("rm", "--force", "--volumes", "--time", "20", id).then(() => {}));
  const ready = () => fetch(`http://127.0.0.1:${INTERNAL_PORT}/readyz`).then(({ status }) => status, String);
  await expect.poll(ready, { timeout: 120_000, interval: 500 }).toBe(200);
  const key = await podman("exec", id, "cat", "/data/dev-api-key");
  const created = await fetch(`http://127.0.0.1:${PORT}/v1/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: "{}",
  });
  expect(created.status, await created.clone().text()).toBe(201);
  expect(await created.json()).toMatchObject({ status: "live" });
});
