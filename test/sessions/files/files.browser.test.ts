import { createHash, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { Code, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, type GrpcTransportOptions } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { FileService, FileSource } from "../../../src/gen/pilothouse/v1/file_pb.ts";
import { fileNameFault } from "../../../src/platform/file-name.ts";
import { addAccount, strangeSession } from "../../e2e/support/accounts.ts";
import { expectProblem, type Received, send } from "../../e2e/support/problem.ts";
import type { FixtureSite } from "../../support/fixture-site.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { runtimes } from "../../support/runtimes.ts";
import { borrowService, type WarmService } from "../../support/warm-service.ts";

const mebibyte = 1024 * 1024;

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

/** Launches a session for a test, and returns its path. */
async function open(request: object = {}): Promise<string> {
  const { status, body } = await rest("/v1/sessions", request);
  expect(status, JSON.stringify(body)).toBe(201);
  const session = `/v1/sessions/${body.id}`;
  onTestFinished(async () => {
    await rest(session, undefined, { method: "DELETE" });
  });
  return session;
}

const pathOf = (session: string, name: string) => `${session}/files/${encodeURIComponent(name)}`;

const put = (session: string, name: string, body: unknown, key = service.key): Promise<Received> =>
  send({ ...service, key }, { method: "PUT", path: pathOf(session, name), body, headers: { "content-type": null } });

const get = async (session: string, name: string): Promise<{ status: number; headers: Headers; data: Buffer }> => {
  const response = await fetch(`${service.url}${pathOf(session, name)}`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  return { status: response.status, headers: response.headers, data: Buffer.from(await response.arrayBuffer()) };
};

const namesIn = async (session: string): Promise<string[]> => {
  const { body } = await rest(`${session}/files?limit=100`);
  return body.data.map(({ name }: { name: string }) => name);
};

/** Finds a session's slot by a file with a unique name. */
async function slotOf(session: string): Promise<string> {
  const marker = randomUUID();
  await put(session, marker, "marker");
  const slots = join(service.dataDir, "slots");
  const slot = readdirSync(slots).find((name) => existsSync(join(slots, name, "files", marker)));
  await rest(pathOf(session, marker), undefined, { method: "DELETE" });
  return join(slots, slot ?? "nowhere");
}

describe("a file", () => {
  test("is uploaded, fetched unchanged, replaced, listed and deleted", async () => {
    const session = await open();
    const [first, second] = [randomBytes(3 * mebibyte + 7), Buffer.from("short")];
    const made = await put(session, "report.csv", first);
    expect([made.status, JSON.parse(made.text)]).toEqual([
      201,
      { name: "report.csv", bytes: first.length, source: "upload", modified_at: expect.stringMatching(/Z$/) },
    ]);
    expect((await get(session, "report.csv")).data.equals(first)).toBe(true);
    await put(session, "empty", "");
    const replaced = await put(session, "report.csv", second);
    expect([replaced.status, JSON.parse(replaced.text).bytes]).toEqual([200, 5]);
    const { status, headers, data } = await get(session, "report.csv");
    expect([status, data.toString()]).toEqual([200, "short"]);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-length": "5",
      "content-disposition": `attachment; filename="report.csv"; filename*=UTF-8''report.csv`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
    });
    expect((await rest(`${session}/files`)).body).toMatchObject({
      data: [
        { name: "report.csv", bytes: 5 },
        { name: "empty", bytes: 0 },
      ],
      has_more: false,
      next_cursor: null,
    });
    const deleted = await rest(pathOf(session, "report.csv"), undefined, { method: "DELETE" });
    expect([deleted.status, deleted.body]).toEqual([204, ""]);
    for (const method of ["GET", "DELETE"]) {
      const { status, body } = await rest(pathOf(session, "report.csv"), undefined, { method });
      expect([status, body.detail]).toEqual([404, 'the session has no file "report.csv"']);
    }
    expect(await namesIn(session)).toEqual(["empty"]);
  });

  test("may have a name in any script, but no path", async () => {
    const session = await open();
    const good = [
      "Grüße 'für' \"Ada\" (1).html",
      "报告.pdf",
      "…",
      ".hidden",
      "a%2Fb",
      " x ",
      "x".repeat(255),
      "😀".repeat(63),
    ];
    for (const name of good) {
      expect((await put(session, name, name)).status, name).toBe(201);
      expect((await get(session, name)).data.toString(), name).toBe(name);
    }
    expect((await get(session, good[0] ?? "")).headers.get("content-disposition")).toBe(
      `attachment; filename="Gr__e 'f_r' _Ada_ (1).html"; ` +
        "filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%27f%C3%BCr%27%20%22Ada%22%20%281%29.html",
    );
    expect(await namesIn(session)).toEqual(good.toReversed());
    const bad = ["../x", "..", ".", "a/b", "a\\b", "a\nb", "a\u0085b", "x".repeat(300), "ü".repeat(128)];
    for (const name of bad) {
      for (const method of ["PUT", "GET", "DELETE"]) {
        // fetch would normalise `..`.
        const { status, body } = await raw(method, `${session}/files/${encodeURIComponent(name)}`);
        expect([status, body.errors?.[0]?.field], `${method} ${JSON.stringify(name)}`).toEqual([400, "name"]);
      }
    }
    for (const [path, status] of [
      [`${session}/files/`, 404],
      [`${session}/files/a%FF`, 400],
      [`${session}/files/a%00b`, 404],
      [`${session}/files/../../x`, 404],
    ] as const) {
      expect((await raw("PUT", path)).status, path).toBe(status);
    }
    expect(await namesIn(session)).toHaveLength(good.length);
  });

  test("is not stored when its upload is cut, and the earlier one is kept", async () => {
    const session = await open();
    const slot = await slotOf(session);
    await put(session, "kept", "whole");
    const cut = request(`${service.url}${pathOf(session, "kept")}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${service.key}`, "content-length": 2 * mebibyte },
    });
    cut.on("error", () => undefined);
    cut.write(Buffer.alloc(mebibyte));
    const incoming = () => readdirSync(slot).filter((name) => name.startsWith("incoming-"));
    await expect.poll(incoming, { timeout: 10_000, interval: 20 }).toHaveLength(1);
    cut.destroy();
    await expect.poll(incoming, { timeout: 10_000, interval: 20 }).toEqual([]);
    expect(await namesIn(session)).toEqual(["kept"]);
    expect((await get(session, "kept")).data.toString()).toBe("whole");
  });

  test("is stored whole when it is uploaded twice at once", async () => {
    const session = await open();
    const bodies = [1, 2, 3, 4].map((byte) => Buffer.alloc(mebibyte * byte, byte));
    const answers = await Promise.all(bodies.map((body) => put(session, "same", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201]);
    const { data } = await get(session, "same");
    expect(bodies.some((body) => body.equals(data))).toBe(true);
    expect((await rest(`${session}/files`)).body.data).toMatchObject([{ name: "same", bytes: data.length }]);
  });

  test("is rejected before its upload if it is declared above the maximal size", async () => {
    const session = await open();
    const told = await raw("PUT", pathOf(session, "big"), { "content-length": String(100 * mebibyte + 1) });
    expect([told.status, told.body.detail]).toEqual([409, "the file exceeds the maximum of 100 MiB"]);
    expect(await namesIn(session)).toEqual([]);
  });

  test("belongs to its account, and is removed with its session", async () => {
    const session = await open();
    await put(session, "mine", "secret");
    const stranger = { ...service, key: await addAccount(service) };
    const reader = { ...service, key: await addAccount(service, { scopes: ["sessions:read"] }) };
    const nowhere = `/v1/sessions/${strangeSession()}`;
    for (const method of ["GET", "PUT", "DELETE"]) {
      const path = pathOf(session, "mine");
      expectProblem(await send(stranger, { method, path }), { status: 404, slug: "not-found" });
      expectProblem(await send(service, { method, path: pathOf(nowhere, "mine") }), { status: 404, slug: "not-found" });
      const refused = await send(reader, { method, path });
      expect(refused.status).toBe(method === "GET" ? 404 : 403);
    }
    expectProblem(await send(stranger, { path: `${session}/files` }), { status: 404, slug: "not-found" });
    const slot = await slotOf(session);
    await rest(session, undefined, { method: "DELETE" });
    for (const method of ["GET", "PUT", "DELETE"]) {
      const gone = await send(service, { method, path: pathOf(session, "mine") });
      expectProblem(gone, { status: 410, slug: "session-destroyed", extensions: { ended_reason: "destroyed" } });
    }
    expect(await namesIn(session)).toEqual(["mine"]);
    expectProblem(await send(stranger, { path: `${session}/files` }), { status: 404, slug: "not-found" });
    // The slot is recreated for another session.
    await expect.poll(() => existsSync(join(slot, "files", "mine")), { timeout: 10_000 }).toBe(false);
  });

  test("is not listed after the end of a session without log", async () => {
    const session = await open({ logs: "off" });
    await put(session, "mine", "secret");
    await rest(session, undefined, { method: "DELETE" });
    expectProblem(await send(service, { path: `${session}/files` }), { status: 410, slug: "session-destroyed" });
  });

  test("is listed in pages, most recently changed first", async () => {
    const session = await open();
    for (const name of ["a", "b", "c", "d"]) await put(session, name, name);
    await put(session, "b", "changed");
    const first = (await rest(`${session}/files?limit=3`)).body;
    expect([first.data.map(({ name }: { name: string }) => name), first.has_more]).toEqual([["b", "d", "c"], true]);
    const second = (await rest(`${session}/files?limit=3&cursor=${first.next_cursor}`)).body;
    expect(second).toMatchObject({ data: [{ name: "a" }], has_more: false, next_cursor: null });
    expect(await rest(`${session}/files?cursor=nonsense`)).toMatchObject({
      status: 400,
      body: { errors: [{ field: "cursor" }] },
    });
  });
});

test.for([
  ["Connect", (options: GrpcTransportOptions) => createConnectTransport({ ...options, httpVersion: "2" })],
  [
    "gRPC on GRPC_PORT",
    (options: GrpcTransportOptions) => createGrpcTransport({ ...options, baseUrl: `http://${service.grpcAddress}` }),
  ],
] as const)(
  "is uploaded in one message over %s up to 4 MiB, downloaded in parts, listed and deleted",
  async ([, connect]) => {
    const session = await open();
    const id = session.slice(session.lastIndexOf("/") + 1);
    const authenticate: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${service.key}`);
      return next(request);
    };
    const connectAnew = () =>
      createClient(FileService, connect({ baseUrl: service.url, interceptors: [authenticate] }));
    const client = connectAnew();
    const fetchFile = async () => {
      const parts: Uint8Array[] = [];
      for await (const part of client.get({ id, name: "four" })) parts.push(part.data);
      return parts;
    };
    const data = randomBytes(4 * mebibyte);
    const file = await client.put({ id, name: "four", content: { data } });
    expect(file).toMatchObject({ name: "four", bytes: BigInt(data.length), source: FileSource.UPLOAD });
    const parts = await fetchFile();
    expect(Buffer.concat(parts).equals(data)).toBe(true);
    expect(Math.max(...parts.map(({ length }) => length))).toBe(256 * 1024);
    // A client that sends for a second after the refusal loses its connection and the requests on it.
    const tooMuch = connectAnew().put({ id, name: "five", content: { data: randomBytes(5 * mebibyte) } });
    await expect(tooMuch).rejects.toMatchObject({ code: Code.ResourceExhausted });
    const escaping = client.put({ id, name: "../four", content: { data } });
    await expect(escaping).rejects.toMatchObject({ code: Code.InvalidArgument });
    expect((await client.list({ id })).data).toMatchObject([{ name: "four", bytes: BigInt(data.length) }]);
    await client.delete({ id, name: "four" });
    expect((await client.list({ id })).data).toEqual([]);
    await expect(fetchFile()).rejects.toMatchObject({ code: Code.NotFound });
  },
);

describe.each(runtimes)("a download of %s", (runtime) => {
  const downloads = async (session: string) => (await rest(`${session}/state`)).body.downloads;

  test("becomes a file of the session, under a unique name", async () => {
    const session = await open({ runtime });
    await put(session, "report.csv", "mine");
    await rest(`${session}/navigate`, { url: site.url("/popups.html") });
    for (const name of ["report (1).csv", "report (2).csv"]) {
      await rest(`${session}/interact`, { action: { kind: "tap", selector: "#download" } });
      const last = async () => (await downloads(session)).at(-1);
      await expect.poll(last, { timeout: 10_000 }).toEqual({ file_name: name, bytes: 8, status: "finished" });
      expect((await get(session, name)).data.toString()).toBe("a,b\n1,2\n");
    }
    expect((await get(session, "report.csv")).data.toString()).toBe("mine");
    expect((await rest(`${session}/files`)).body.data).toMatchObject([
      { name: "report (2).csv", bytes: 8, source: "download" },
      { name: "report (1).csv", source: "download" },
      { name: "report.csv", source: "upload" },
    ]);
  });

  test("has a valid name, whatever its page suggests", async () => {
    const session = await open({ runtime });
    for (const name of ["..", "../../../etc/x", "a\nb.txt", "x".repeat(400), "报告.pdf"]) {
      const before = (await namesIn(session)).length;
      await rest(`${session}/navigate`, { url: site.url(`/named?name=${encodeURIComponent(name)}`) });
      await expect.poll(async () => (await namesIn(session)).length, { timeout: 10_000 }).toBe(before + 1);
      const [stored = ""] = await namesIn(session);
      expect(fileNameFault(stored), stored).toBeUndefined();
      expect((await get(session, stored)).data.toString()).toBe("named");
    }
    expect((await namesIn(session))[0]).toBe("报告.pdf");
  });

  test("is rejected above the maximal size", async () => {
    const session = await open({ runtime });
    await rest(`${session}/navigate`, { url: site.url("/huge-download") });
    const statuses = async () => (await downloads(session)).map(({ status }: { status: string }) => status);
    await expect.poll(statuses, { timeout: 20_000 }).toEqual(["refused"]);
    expect(await namesIn(session)).toEqual([]);
    const slot = await slotOf(session);
    await expect.poll(() => readdirSync(join(slot, "artifacts")), { timeout: 10_000 }).toEqual([]);
  });
});

describe.each(runtimes)("an upload in %s", (runtime) => {
  let session: string;

  beforeEach(async () => {
    session = await open({ runtime });
    await rest(`${session}/navigate`, { url: site.url("/upload.html") });
  });

  const interact = (action: object, more: object = {}) => rest(`${session}/interact`, { action, ...more });
  const upload = (selector: string, files: string[], more: object = {}) =>
    interact({ kind: "upload", selector, files, ...more });
  const title = async () => (await rest(`${session}/state`)).body.title;

  test("sets the files of a form, whose server receives them", async () => {
    const [large, small] = [randomBytes(5 * mebibyte), Buffer.from("small")];
    await put(session, "large.bin", large);
    await put(session, "Grüße.txt", small);
    expect(await upload("#one", ["large.bin"])).toMatchObject({
      status: 200,
      body: { title: "input one large.bin:5242880 | change one large.bin:5242880" },
    });
    const both = "Grüße.txt:5,large.bin:5242880";
    const received = (await upload("#label", ["Grüße.txt", "large.bin"])).body.title;
    expect(received.split(" | ").slice(2)).toEqual([`input many ${both}`, `change many ${both}`]);
    await interact({ kind: "tap", selector: "#send" });
    await expect.poll(title, { timeout: 10_000 }).toMatch(/^received/);
    expect(JSON.parse((await title()).slice("received".length))).toEqual([
      ["one", "large.bin", sha1(large)],
      ["many", "Grüße.txt", sha1(small)],
      ["many", "large.bin", sha1(large)],
      ["text", ""],
    ]);
  });

  test("replaces the chosen files, and dispatches events for the same file again", async () => {
    await put(session, "a", "a");
    await put(session, "b", "bb");
    await upload("#one", ["a"]);
    await upload("#one", ["b"]);
    await put(session, "b", "bbb");
    const received = (await upload("#one", ["b"])).body.title.split(" | ");
    expect(received.filter((line: string) => line.startsWith("change"))).toEqual([
      "change one a:1",
      "change one b:2",
      "change one b:3",
    ]);
  });

  test("works in frames, and accepts a page's downloads", async () => {
    const { body: response } = await rest(`${session}/navigate`, { url: site.url("/download") });
    expect(response).toMatchObject({ url: site.url("/upload.html"), download: { file_name: "report.csv" } });
    await expect.poll(() => namesIn(session), { timeout: 10_000 }).toEqual(["report.csv"]);
    await rest(`${session}/navigate`, { url: site.url("/upload.html") });
    const { body } = await upload("#framed", ["report.csv"], { frame: ["iframe"] });
    expect(body.title).toBe("framed report.csv");
  });

  test("answers the file chooser of a button, also for an input outside of the document", async () => {
    await put(session, "a", "a");
    await put(session, "b", "b");
    const { body } = await upload("#open", ["a", "b"]);
    expect(body.title).toBe("input many a:1,b:1 | change many a:1,b:1");
    expect((await upload("#make", ["b"])).body.title).toBe("made b");
    const { dialogs } = (await rest(`${session}/state`)).body;
    expect(dialogs).toMatchObject([
      { kind: "file_chooser", message: "asked for files", answer: "accepted" },
      { kind: "file_chooser", message: "asked for a file", answer: "accepted" },
    ]);
    // No further chooser is expected.
    await interact({ kind: "tap", selector: "#make" });
    const last = async () => (await rest(`${session}/state`)).body.dialogs.at(-1).answer;
    await expect.poll(last, { timeout: 10_000 }).toBe("dismissed");
  });

  test("changes nothing when it is rejected", async () => {
    await put(session, "a", "a");
    await put(session, "b", "b");
    for (const [selector, files, field, message] of [
      ["#one", ["a", "no"], "action.files[1]", 'the session has no file "no"'],
      ["#one", ["../a"], "action.files[0]", 'the session has no file "../a"'],
      ["#one", ["a", "b"], "action.files", "must be one file: the input does not accept several"],
      ["#folder", ["a"], "action.selector", "takes a directory"],
      ["#one:", ["a"], "action.selector", "is not a CSS selector"],
      ["#one", [], "action.files", "must have at least one item"],
    ] as const) {
      const { status, body } = await upload(selector, [...files]);
      expect([status, body.errors], selector).toEqual([400, [{ field, message }]]);
    }
    const { status, body } = await interact({ kind: "upload", selector: "#none", files: ["a"] }, { timeout_ms: 1_000 });
    expect([status, body.detail]).toEqual([
      504,
      expect.stringMatching(/^no element matches `#none` \(on the page http/),
    ]);
    const nothing = await interact({ kind: "upload", selector: "#nothing", files: ["a"] }, { timeout_ms: 1_000 });
    const detail = "the element is not a file input, and tapping it opened no file chooser";
    expect([nothing.status, nothing.body.detail]).toEqual([504, expect.stringContaining(detail)]);
    expect(await title()).toBe("Upload");
  });
});

const sha1 = (data: Buffer) => createHash("sha1").update(data).digest("hex");

/** Sends a request without body to an unnormalised path, and returns the response's JSON. */
async function raw(method: string, path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(service.url);
  const asked = request({
    hostname,
    port,
    method,
    path,
    headers: { authorization: `Bearer ${service.key}`, ...headers },
  });
  asked.on("error", () => undefined);
  if (headers["content-length"] === undefined) asked.end();
  else asked.flushHeaders();
  const [response] = await once(asked, "response");
  let text = "";
  for await (const part of response.setEncoding("utf8")) text += part;
  asked.destroy();
  return { status: response.statusCode, body: JSON.parse(text) };
}
