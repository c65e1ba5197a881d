import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { addAccount } from "../../e2e/support/accounts.ts";
import type { FixtureSite } from "../../support/fixture-site.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { borrowService, type WarmService } from "../../support/warm-service.ts";

const run = promisify(execFile);

let site: FixtureSite;
let service: WarmService;
let rest: Rest;

beforeAll(async () => {
  ({ service, site } = await borrowService());
  rest = restClient(service);
});
afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

async function open(): Promise<string> {
  const { body } = await rest("/v1/sessions", {});
  const session = `/v1/sessions/${body.id}`;
  onTestFinished(async () => {
    await rest(session, undefined, { method: "DELETE" });
  });
  return session;
}

const pathOf = (session: string, name: string) => `${session}/files/${encodeURIComponent(name)}`;
const put = (session: string, name: string, body: BodyInit) =>
  rest(pathOf(session, name), undefined, { method: "PUT", body });
const digest = (data: Uint8Array) => createHash("sha1").update(data).digest("hex");

/** Lists an archive by an independent implementation, which also compares all checksums. */
async function listZip(archive: Buffer): Promise<Record<string, [bytes: number, sha1: string, compression: number]>> {
  const directory = await mkdtemp(join(tmpdir(), "zip-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "files.zip");
  await writeFile(path, archive);
  const script = `import sys, json, hashlib, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
sha1 = lambda i: hashlib.sha1(z.read(i)).hexdigest()
print(json.dumps({i.filename: [i.file_size, sha1(i), i.compress_type] for i in z.infolist()}))`;
  const { stdout } = await run("python3", ["-c", script, path]);
  return JSON.parse(stdout);
}

test("files.zip has all files of the session as they are", async () => {
  const session = await open();
  const fetchZip = () =>
    fetch(`${service.url}${session}/files.zip`, { headers: { authorization: `Bearer ${service.key}` } });
  expect(await listZip(Buffer.from(await (await fetchZip()).arrayBuffer()))).toEqual({});
  const files: Record<string, Buffer<ArrayBuffer>> = {
    "report.csv": randomBytes(3 * 2 ** 20 + 7),
    "C:\u{1f600} Grüße.txt": Buffer.from("text"),
    empty: Buffer.alloc(0),
  };
  for (const [name, data] of Object.entries(files)) expect((await put(session, name, data)).status).toBe(201);
  const response = await fetchZip();
  expect(response.headers.get("content-type")).toBe("application/zip");
  expect(response.headers.get("content-disposition")).toContain('filename="files.zip"');
  const expected = Object.entries(files).map(([name, data]) => [name, [data.length, digest(data), 0]]);
  expect(await listZip(Buffer.from(await response.arrayBuffer()))).toEqual(Object.fromEntries(expected));
});

test("a link returns its file once, without a key", async () => {
  const session = await open();
  await put(session, "a b.txt", "content");
  const { status, body } = await rest(`${pathOf(session, "a b.txt")}/link`, {});
  expect({ status, body }).toMatchObject({ status: 201, body: { method: "get" } });
  const left = Date.parse(body.expires_at) - Date.now();
  expect(left).toBeGreaterThan(590_000);
  expect(left).toBeLessThanOrEqual(600_500);
  // A preview does not use the link.
  expect((await fetch(body.url, { method: "HEAD" })).status).toBe(200);
  const answers = await Promise.all([fetch(body.url), fetch(body.url), fetch(body.url)]);
  const texts = await Promise.allSettled(answers.map(async (answer) => answer.ok && (await answer.text())));
  expect(texts.filter((text) => text.status === "fulfilled" && text.value === "content")).toHaveLength(1);
  const again = await fetch(body.url);
  expect([again.status, (await again.json()).detail]).toEqual([401, "the link was already used: request a new link"]);
});

test("a link stores its file once; an upload that fails does not use it", async () => {
  const session = await open();
  const { body } = await rest(`${pathOf(session, "up.bin")}/link`, { method: "put" });
  const upload = (data: BodyInit, headers = {}) => fetch(body.url, { method: "PUT", body: data, headers });
  const broken = new ReadableStream({
    pull: (controller) => controller.error(new Error("the client leaves")),
  });
  await expect(fetch(body.url, { method: "PUT", body: broken, duplex: "half" } as RequestInit)).rejects.toThrow();
  const data = randomBytes(300_000);
  await expect.poll(async () => (await upload(data)).status, { timeout: 10_000 }).toBe(201);
  expect((await upload("other")).status).toBe(401);
  const kept = await fetch(`${service.url}${pathOf(session, "up.bin")}`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  expect(digest(Buffer.from(await kept.arrayBuffer()))).toBe(digest(data));
});

test("a link opens nothing but its file and method", async () => {
  const session = await open();
  await put(session, "a.txt", "a");
  await put(session, "b.txt", "b");
  const { body } = await rest(`${pathOf(session, "a.txt")}/link`, { method: "put" });
  const token = body.url.split("/").at(-1);
  const asLink = restClient({ url: service.url, key: token });
  const other = await open();
  for (const [path, method] of [
    [`${pathOf(session, "a.txt")}/link/${token}`, "GET"],
    [`${pathOf(session, "b.txt")}/link/${token}`, "PUT"],
    [`${pathOf(other, "a.txt")}/link/${token}`, "PUT"],
  ])
    expect(
      (await fetch(`${service.url}${path}`, { method, ...(method === "PUT" && { body: "x" }) } as RequestInit)).status,
    ).toBe(method === "GET" ? 403 : 404);
  for (const path of ["/v1/sessions", session, `${session}/state`, `${session}/files`, `${session}/files.zip`])
    expect((await asLink(path)).status).toBe(403);
  expect((await asLink(`${session}/cdp-url`, {})).status).toBe(403);
  expect((await fetch(`${service.url}${session}/cdp/${token}/json/version`)).status).toBe(403);
  const key = await fetch(`${service.url}${pathOf(session, "a.txt")}/link/${service.key}`);
  expect(key.status).toBe(403);
});

test("a link needs the scope of its method, and the session of its account", async () => {
  const session = await open();
  const { key } = (await rest("/v1/api-keys", { name: "reader", scopes: ["sessions:read"] })).body;
  const reader = restClient({ url: service.url, key });
  expect((await reader(`${pathOf(session, "a.txt")}/link`, {})).status).toBe(201);
  expect((await reader(`${pathOf(session, "a.txt")}/link`, { method: "put" })).status).toBe(403);
  const stranger = restClient({ url: service.url, key: await addAccount(service) });
  expect((await stranger(`${pathOf(session, "a.txt")}/link`, {})).status).toBe(404);
  expect((await stranger(`${session}/files.zip`)).status).toBe(404);
});
