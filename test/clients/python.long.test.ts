import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";

const run = promisify(execFile);
const packages = ["openapi-python-client==0.29.1", "mypy==2.4.1"];
const journey = `
import json
import sys

from generated.api.session import create_session, destroy_session, get_session
from generated.client import AuthenticatedClient
from generated.models import CreateSessionRequest, Session

url, key = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=key, timeout=None) as client:
    session = create_session.sync(client=client, body=CreateSessionRequest(archetype="pixel-7"))
    assert isinstance(session, Session)
    destroy_session.sync_detailed(session.id, client=client)
    problem = get_session.sync(session.id, client=client)
    assert problem is not None and not isinstance(problem, Session)
    print(json.dumps({"archetype": session.archetype, "status": problem.status, "type": problem.type_}))
`;
let directory: string;
let service: Service | undefined;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-client-"));
  await run("python3", ["-m", "venv", "venv"], { cwd: directory });
  await inVenv("pip", "install", "--quiet", "--disable-pip-version-check", ...packages);
  service = await startService();
}, 600_000);

afterAll(async () => {
  await service?.stop();
  await rm(directory, { recursive: true, force: true });
});

test("a Python client generated from the served document compiles, drives a session and reads a problem", async () => {
  if (!service) throw new Error("the service is not set up");
  const { url, key } = service;
  const document = ["--url", `${url}/v1/openapi.json`, "--output-path", "generated", "--meta", "none"];
  await inVenv("openapi-python-client", "generate", ...document, "--fail-on-warning");
  await writeFile(join(directory, "journey.py"), journey);
  // `generated/client.py` is the same for every document, and mypy finds fault with it: its types are taken as they are.
  await inVenv("mypy", "--strict", "--follow-imports=silent", "journey.py", "generated/api", "generated/models");
  const answer = await inVenv("python", "journey.py", url, key);
  expect(JSON.parse(answer)).toEqual({
    archetype: "pixel-7",
    status: 410,
    type: expect.stringMatching(/\/session-destroyed$/),
  });
}, 180_000);

/** Runs a program of the virtual environment, which finds the others there: the generator formats with ruff. */
async function inVenv(program: string, ...args: string[]): Promise<string> {
  const bin = join(directory, "venv/bin");
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  const ended = run(join(bin, program), args, { cwd: directory, env });
  const { stdout } = await ended.catch((failure) => Promise.reject(new Error(`${failure.message}\n${failure.stdout}`)));
  return stdout;
}
