"""Takes samples for the bench first-lines: a line of the input names the side, and a line of the output is its time."""

import base64
import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from pilothouse import Pilothouse

page, picture = sys.argv[1], Path(sys.argv[2])
url = urlsplit(os.environ["PILOTHOUSE_URL"])
connection = http.client.HTTPConnection(url.hostname or "", url.port)
client = Pilothouse()


def send(method: str, path: str, body: object = None) -> dict[str, str]:
    headers = {"authorization": f"Bearer {os.environ['PILOTHOUSE_API_KEY']}", "content-type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    data = response.read()
    if response.status >= 300:
        raise RuntimeError(f"{method} {path}: {response.status} {data.decode()}")
    return json.loads(data) if data else {}


def take_raw() -> Callable[[], object]:
    path = f"/v1/sessions/{send('POST', '/v1/sessions', {})['id']}"
    send("POST", f"{path}/navigate", {"url": page})
    picture.write_bytes(base64.b64decode(send("POST", f"{path}/capture", {"kind": "screenshot"})["data"]))
    return lambda: send("DELETE", path)


def take_sdk() -> Callable[[], object]:
    session = client.sessions.create()
    session.goto(page)
    picture.write_bytes(session.screenshot())
    return session.end


for line in sys.stdin:
    began = time.perf_counter()
    end = take_sdk() if line.strip() == "sdk" else take_raw()
    spent = time.perf_counter() - began
    end()
    print(spent * 1000, flush=True)
