import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";
import { journeyResult, openWorkshop, type Workshop } from "./generated-client.ts";

const packages = ["openapi-python-client==0.29.1", "mypy==2.4.1"];
const journey = `
import json
import sys
from io import BytesIO

from generated.api.file import get_file, put_file
from generated.api.session import capture_session, create_session, destroy_session, get_session, interact_session
from generated.client import AuthenticatedClient
from generated.models import (
    CaptureKind, CaptureRequest, CaptureResult, CreateSessionRequest, InteractRequest, InteractRequestActionTap,
    InteractResult, ObserveOptionsInput, Problem, Session, SessionFile,
)
from generated.types import File

url, key = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=key, timeout=None) as client:
    session = create_session.sync(client=client, body=CreateSessionRequest())
    assert isinstance(session, Session)
    id = session.id
    tap = InteractRequestActionTap(kind="tap", x=10, y=10)
    tapped = interact_session.sync(id, client=client, body=InteractRequest(action=tap, observe=ObserveOptionsInput()))
    assert isinstance(tapped, InteractResult)
    captures = []
    for kind in [CaptureKind.SCREENSHOT, CaptureKind.DOM_SNAPSHOT, CaptureKind.PDF]:
        capture = capture_session.sync(id, client=client, body=CaptureRequest(kind=kind))
        assert isinstance(capture, CaptureResult)
        captures.append(capture.content_type)
    put = put_file.sync(id, "note.txt", client=client, body=File(BytesIO(b"a file")))
    assert isinstance(put, SessionFile)
    content = get_file.sync(id, "note.txt", client=client)
    assert isinstance(content, File)
    destroy_session.sync_detailed(id, client=client)
    problem = get_session.sync(id, client=client)
    assert isinstance(problem, Problem)
    print(json.dumps({
        "page": tapped.url, "captures": captures, "bytes": put.bytes_, "text": content.payload.read().decode(),
        "type": problem.type_, "reason": problem["ended_reason"],
    }))
`;
let workshop: Workshop;
let service: Service | undefined;

beforeAll(async () => {
  // The generator formats with ruff, which must be on the path.
  workshop = await openWorkshop("venv/bin");
  await workshop.run("python3", "-m", "venv", "venv");
  await workshop.run("pip", "install", "--quiet", "--disable-pip-version-check", ...packages);
  service = await startService();
}, 600_000);

afterAll(async () => {
  await service?.stop();
  await workshop[Symbol.asyncDispose]();
});

test("a Python client generated from the served document compiles, drives a session and reads a problem", async () => {
  if (!service) throw new Error("the service is not set up");
  const { url, key } = service;
  const document = ["--url", `${url}/v1/openapi.json`, "--output-path", "generated", "--meta", "none"];
  await workshop.run("openapi-python-client", "generate", ...document, "--fail-on-warning");
  await writeFile(join(workshop.directory, "journey.py"), journey);
  // `generated/client.py` is constant and fails mypy, so its types are used unchecked.
  await workshop.run("mypy", "--strict", "--follow-imports=silent", "journey.py", "generated/api", "generated/models");
  const { stdout } = await workshop.run("python", "journey.py", url, key);
  expect(JSON.parse(stdout)).toEqual(journeyResult);
}, 300_000);
