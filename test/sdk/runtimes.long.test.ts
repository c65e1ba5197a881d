import { cp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { credentials, ExampleSite } from "../examples/example-site.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { packSdk } from "./typescript-package.ts";

const example = "reuse-login.ts";
const examples = join(import.meta.dirname, "../../examples/typescript");

/** Other runtimes than Node.js: their package, and the command that runs a program with it. */
const runtimes = {
  bun: { package: "bun@1.4.5", command: ["bun", "run"] },
  deno: { package: "deno@2.9.6", command: ["deno", "run", "--allow-env", "--allow-net", "--node-modules-dir=manual"] },
} as const;

let project: Workshop;
let scene: OwnCdpScene;
let site: ExampleSite;

beforeAll(async () => {
  project = await openWorkshop("node_modules/.bin");
  const tarball = await packSdk(project.directory);
  const packages = Object.values(runtimes).map((runtime) => runtime.package);
  await project.run("npm", "install", `./${tarball}`, ...packages, "--omit=peer", "--no-audit", "--no-fund");
  await cp(join(examples, example), join(project.directory, example));
  site = await new ExampleSite().start();
  scene = await startCdpScene({ EGRESS_ALLOW: site.host });
}, 600_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await site?.stop();
  await project?.[Symbol.asyncDispose]();
});

describe.each(Object.entries(runtimes))("in %s", (_, { command }) => {
  test("runs an example", async () => {
    const { url, key } = scene.service;
    const settings = { PILOTHOUSE_URL: url, PILOTHOUSE_API_KEY: key, SHOP_PASSWORD: credentials.password };
    const given = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    const run = async () =>
      (await project.run("env", ...given, ...command, example, site.url)).stdout.trim().split("\n");
    expect(await run()).toEqual(["logged in", "Account of ada"]);
    expect(await run()).toEqual(["reused the login", "Account of ada"]);
    const { body } = await scene.rest("/v1/profiles");
    // The next runtime creates its own profile.
    await scene.rest(`/v1/profiles/${body.data[0].id}`, undefined, { method: "DELETE" });
  }, 180_000);
});
