import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copyProject } from "../contract/project-copy.ts";
import { type Service, startService } from "../support/service.ts";

let copy: string;
let service: Service;

const run = async (command: string, env: Record<string, string> = {}): Promise<string> => {
  const options = { cwd: copy, env: { ...process.env, ...env }, timeout: 300_000 };
  return (await promisify(execFile)("sh", ["-c", command], options)).stdout;
};

beforeAll(async () => {
  copy = await copyProject();
  await run("sh tools/new.sh service note");
  await run("sh tools/new.sh endpoint NoteService.Rename POST '/v1/notes/{id}/rename'");
  await run("sh tools/new.sh event note.renamed");
  service = await startService({}, undefined, [process.execPath, join(copy, "gateway/main.ts")]);
}, 400_000);
afterAll(async () => {
  await service?.stop();
  await rm(copy, { recursive: true, force: true });
});

test("a new endpoint is served over REST, Connect and gRPC, and is in the reference", async () => {
  const headers = { authorization: `Bearer ${service.key}`, "content-type": "application/json" };
  const post = async (path: string, body: object): Promise<unknown> =>
    (await fetch(service.url + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
  expect(await post("/v1/notes/first/rename", {})).toEqual({ id: "first" });
  expect(await post("/pilothouse.v1.NoteService/Rename", { id: "second" })).toEqual({ id: "second" });
  const grpc = `buf curl --protocol grpc --http2-prior-knowledge -H "authorization: Bearer $KEY" -d '{"id":"third"}'`;
  const address = `http://${service.grpcAddress}/pilothouse.v1.NoteService/Rename`;
  expect(JSON.parse(await run(`${grpc} ${address}`, { KEY: service.key }))).toEqual({ id: "third" });
  expect(await (await fetch(`${service.url}/docs`)).text()).toContain("/v1/notes/{id}/rename");
});

test("stubs pass the checks and the rules of the contract", async () => {
  await run("sh tools/check.sh types import_law dead_code proto_lint");
  await run(
    "node_modules/.bin/vitest run --project=unit test/contract/audited.unit.test.ts test/contract/descriptors.unit.test.ts",
  );
}, 400_000);

test("an existing name and an unknown service are refused without a change", async () => {
  await expect(run("sh tools/new.sh service note")).rejects.toThrow("exists already");
  await expect(run("sh tools/new.sh endpoint PenService.Get GET /v1/pens")).rejects.toThrow(
    "no proto file has the service",
  );
}, 30_000);
