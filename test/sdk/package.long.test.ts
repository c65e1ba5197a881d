import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { playgroundActions } from "../../console/pages/playground/actions.ts";
import { typescriptSnippet } from "../../console/pages/playground/snippets.ts";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { packSdk } from "./typescript-package.ts";

const root = join(import.meta.dirname, "../..");
const sdk = join(root, "sdk/typescript");
const compiler = join(root, "node_modules/typescript/bin/tsc");
const maxBytes = 60 * 1024;

let scene: OwnCdpScene;
let project: Workshop;

beforeAll(async () => {
  project = await openWorkshop("node_modules/.bin");
  const tarball = await packSdk(project.directory);
  expect((await stat(join(project.directory, tarball))).size).toBeLessThan(maxBytes);
  await writeFile(join(project.directory, "package.json"), '{ "type": "module", "private": true }');
  await project.run("npm", "install", `./${tarball}`, "--omit=peer", "--no-audit", "--no-fund");
  scene = await startCdpScene();
}, 180_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await project?.[Symbol.asyncDispose]();
});

/** Compiles programs strictly against the installed package, without the types of optional packages. */
function compile(...files: readonly string[]): Promise<unknown> {
  const options = ["--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "esnext"];
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types"), "--noEmit"];
  return project.run(process.execPath, compiler, ...options, ...types, ...files);
}

test("runs the first lines of its README against a service", async () => {
  const readme = await readFile(join(sdk, "README.md"), "utf8");
  const [, program = ""] = /```ts\n(.*?)```/s.exec(readme) ?? [];
  expect(program.trim().split("\n").length).toBeLessThanOrEqual(10);
  await writeFile(
    join(project.directory, "first.ts"),
    program.replace("https://example.com/", scene.site.url("/plain.html")),
  );
  await compile("first.ts");
  const { key, url } = scene.service;
  const settings = `process.env.PILOTHOUSE_API_KEY = "${key}"; process.env.PILOTHOUSE_URL = "${url}";`;
  await writeFile(join(project.directory, "run.mjs"), `${settings}\nawait import("./first.ts");\n`);
  await project.run(process.execPath, "run.mjs");
  const picture = await readFile(join(project.directory, "page.png"));
  expect(picture.subarray(1, 4).toString()).toBe("PNG");
  const { body } = await scene.rest("/v1/sessions?status=live");
  expect(body.data).toEqual([]);
});

test.each([
  ["an unknown option of create", 'client.sessions.create({ time_zone: "UTC" })'],
  ["an unknown format", 'session.screenshot({ format: "gif" })'],
  ["an unknown library", 'session.connect("selenium")'],
  ["an archetype that is no text", "client.sessions.create({ archetype: 7 })"],
  ["a field that can be absent", '(await client.fetch("http://a/")).challenge.kind'],
  ["an unknown slug", 'error.is("no-such-slug")'],
  ["an unknown field of an event", "for await (const e of session.events()) if (e.type === 'session.live') e.data.no"],
])("its types refuse %s", async (_, line) => {
  const program = `import { BrowserSession, Pilothouse, PilothouseResponseError } from "@pilothouse/sdk";
declare const client: Pilothouse; declare const session: BrowserSession; declare const error: PilothouseResponseError;
export async function wrong() {
  // @ts-expect-error
  ${line};
}`;
  await writeFile(join(project.directory, "wrong.ts"), program);
  await compile("wrong.ts");
});

test("its types accept the code of all actions of the playground", async () => {
  const files = await Promise.all(
    playgroundActions.map(async (action) => {
      const file = `${action.id}.ts`;
      const code = typescriptSnippet({ action, body: action.body, sessionId: "ses_1", baseUrl: scene.service.url });
      await writeFile(join(project.directory, file), code);
      return file;
    }),
  );
  expect(files.length).toBeGreaterThan(30);
  await compile(...files);
});
