import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signatureHeaders } from "../../src/webhooks/webhook-signature.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { sectionsOf } from "../support/guide-blocks.ts";
import { halves, installWheel, type PythonPackage } from "./python-package.ts";

const sdk = join(import.meta.dirname, "../../sdk/python");

let scene: OwnCdpScene;
let python: PythonPackage;

beforeAll(async () => {
  python = await installWheel("playwright==1.65.2", "mypy==2.4.1", "langchain-core==1.8.1");
  await python.run("npm", "install", "pyright@1.1.414", "--no-audit", "--no-fund");
  scene = await startCdpScene();
}, 600_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await python?.[Symbol.asyncDispose]();
});

/** Settings of the client for a program that creates it without arguments. */
const settings = () => {
  const { key, url } = scene.service;
  return `import os\nos.environ.update(PILOTHOUSE_API_KEY="${key}", PILOTHOUSE_URL="${url}")\n`;
};

test("runs the first lines of its README against a service", async () => {
  const readme = await readFile(join(sdk, "README.md"), "utf8");
  const [, program = ""] = /```python\n(.*?)```/s.exec(readme) ?? [];
  expect(program.trim().split("\n").length).toBeLessThanOrEqual(10);
  const text = program.replace("https://example.com/", scene.site.url("/plain.html"));
  await writeFile(join(python.directory, "first.py"), settings() + text);
  await python.run("mypy", "--strict", "first.py");
  await python.run("python", "-W", "error", "first.py");
  const picture = await readFile(join(python.directory, "page.png"));
  expect(picture.subarray(1, 4).toString()).toBe("PNG");
  const { body } = await scene.rest("/v1/sessions?status=live");
  expect(body.data).toEqual([]);
});

test("runs the lines of the README of the project", async () => {
  const [program = ""] = sectionsOf("../README.md").flatMap(({ blocks }) =>
    blocks.filter(({ language }) => language === "python").map(({ text }) => text),
  );
  await writeFile(join(python.directory, "link.py"), settings() + program);
  const { stdout } = await python.run("python", "-W", "error", "link.py");
  expect(stdout).toMatch(/^http:\S+\n$/);
  const { body } = await scene.rest("/v1/sessions?status=live");
  for (const { id } of body.data) await scene.rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
});

/** Drives a session. Its page writes to the console, so that its stream has events until the program ends it. */
const journey = `
session = await client.sessions.create(labels={"half": HALF})
page = await session.goto(SITE + "/form.html")
show([page["http_status"], page["title"]])
await session.fill("#name", "Eve")
await session.type("Love", selector="#empty")
show((await session.press("Backspace", timeout_ms=10_000))["title"])
tapped = await session.tap("#check", observe={})
show([f'"{value}"' in tapped["observation"]["snapshot"] for value in ["Eve", "Lov"]])
await session.wait("#name")
await session.wait({"kind": "load_state"}, timeout_ms=1_000)
await session.scroll(dy=300)
show((await session.state())["scroll"]["y"])
show("Eve" in (await session.observe(scope="page"))["snapshot"])
show(type((await session.read())["markdown"]).__name__)
show([(await session.screenshot())[1:4].decode(), (await session.pdf(paper="a5"))[:4].decode()])
show([other.id == session.id async for other in client.sessions.list(label=["half:" + HALF], limit=1)])
await session.files.put("ä b.txt", "a file")
show((await session.files.get("ä b.txt")).decode())
show([file["name"] async for file in session.files.list()])
await session.files.delete("ä b.txt")
try:
    await session.files.get("ä b.txt")
except pilothouse.errors.NotFoundError as error:
    show(error.slug)
show((await session.live_url(control=True))[:4])
async with session.playwright() as browser:
    page = browser.contexts[0].pages[0]
    await page.goto(SITE + "/plain.html")
    await page.evaluate("void setInterval(() => console.log(1), 200)")
show((await session.state())["url"] == SITE + "/plain.html")
types = []
async for event in session.events():
    types.append(event["type"])
    await session.end()
    await session.end()
show(types[-1])
show([entry["type"] async for entry in client.sessions.logs(session.id)][0])
try:
    await session.state()
except PilothouseResponseError as error:
    show([error.slug, error.status, type(error).__name__])
fetched = await client.fetch(SITE + "/plain.html", formats=["markdown", "screenshot"])
show([fetched["http_status"], type(fetched["markdown"]).__name__])
`;

describe.each(halves)("the %s half", (half) => {
  test("drives a session from create to end, and fetches a page", async () => {
    const site = scene.site.url("/").replace(/\/$/, "");
    const program = `SITE, HALF = ${JSON.stringify(site)}, "${half}"\n${journey}`;
    const { url, key } = scene.service;
    expect(await python.runProgram(half, url, program, "", key)).toEqual([
      [200, "Form"],
      "key Backspace",
      [true, true],
      300,
      true,
      "str",
      ["PNG", "%PDF"],
      [true],
      "a file",
      ["ä b.txt"],
      "not-found",
      "http",
      true,
      "session.completed",
      "navigation",
      ["session-destroyed", 410, "SessionDestroyedError"],
      [200, "str"],
    ]);
  });

  test("provides tools of LangChain that drive a session", async () => {
    const invoke = half === "asynchronous" ? "ainvoke" : "invoke";
    const program = `from pilothouse.integrations.langchain import create_tools
async with await client.sessions.create() as session:
    tools = {tool.name: tool for tool in create_tools(session)}
    show([[name, bool(tool.description), list(tool.args)] for name, tool in tools.items()])
    show("Ada" in await tools["navigate"].${invoke}({"url": "${scene.site.url("/form.html")}"}))
    show((await tools["tap"].${invoke}({"ref": "s9e9"})).split(":")[0])`;
    const { url, key } = scene.service;
    expect(await python.runProgram(half, url, program, "", key)).toEqual([
      [
        ["navigate", true, ["url"]],
        ["observe", true, []],
        ["tap", true, ["ref"]],
        ["fill", true, ["ref", "text"]],
        ["press", true, ["key"]],
        ["read", true, []],
      ],
      true,
      "error validation-failed",
    ]);
  });
});

test.each([
  ["an unknown option of create", 'client.sessions.create(time_zone="UTC")', "call-arg"],
  ["an unknown format", 'session.screenshot(format="gif")', "arg-type"],
  ["an unknown field of a response", 'session.state()["adress"]', "typeddict-item"],
  ["an unknown action", 'session.interact({"kind": "jump"})', "misc, arg-type"],
  ["a missing await", 'asynchronous.goto("http://a/")["title"]', "index"],
])(
  "its types refuse %s",
  async (_, line, code) => {
    const program = `from pilothouse import AsyncBrowserSession, BrowserSession, Pilothouse
def wrong(client: Pilothouse, session: BrowserSession, asynchronous: AsyncBrowserSession) -> None:
    ${line}  # type: ignore[${code}]
`;
    await writeFile(join(python.directory, "wrong.py"), program);
    await python.run("mypy", "--strict", "wrong.py");
  },
  180_000,
);

/** Runs pyright with the packages of the virtual environment. */
const pyright = (...args: readonly string[]) =>
  python.run("node", "node_modules/pyright/index.js", "--pythonpath", "venv/bin/python", ...args);

test("passes the strict checks of pyright", async () => {
  const { stdout } = await pyright("--project", sdk);
  expect(stdout).toBe("0 errors, 0 warnings, 0 informations\n");
}, 180_000);

test("has types for its whole public surface", async () => {
  const { stdout } = await pyright("--verifytypes", "pilothouse", "--ignoreexternal");
  expect(stdout).toContain("Type completeness score: 100%");
}, 180_000);

test("its types know the data of each event and the extensions of each error", async () => {
  const program = `from pilothouse import BrowserSession, FetchedPage, Pilothouse
from pilothouse.errors import ProfileInUseError
def fetch(client: Pilothouse) -> FetchedPage:
    return client.fetch("http://a/", formats=["markdown"], archetype="pixel-7")
def right(session: BrowserSession, error: ProfileInUseError) -> str:
    for event in session.events():
        if event["type"] == "session.page_navigated":
            return event["data"]["url"]
    return error.problem["active_session_id"]
`;
  await writeFile(join(python.directory, "right.py"), program);
  await python.run("mypy", "--strict", "right.py");
});

const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const other = `whsec_${Buffer.alloc(24, 8).toString("base64")}`;
const body = '{"id":"evt_1","type":"test.ping","data":{"message":"ü"}}';

/** Signs a delivery as the service does, some seconds ago. */
function delivery(age: number, secrets: readonly string[] = [secret]) {
  const timestamp = Math.floor(Date.now() / 1000) - age;
  return { body, secret, headers: signatureHeaders(secrets, { id: "evt_1", body, timestamp }) };
}

test("accepts genuine webhook deliveries, and rejects others", async () => {
  const genuine = delivery(0);
  const cases = {
    genuine,
    slow: delivery(290),
    fast: delivery(-290),
    rotated: delivery(0, [other, secret]),
    late: delivery(310),
    early: delivery(-310),
    tolerated: { ...delivery(310), tolerance_seconds: 600 },
    changed: { ...genuine, body: body.replace("ping", "pong") },
    foreign: { ...genuine, secret: other },
    bare: { ...genuine, headers: {} },
    garbled: { ...genuine, headers: { ...genuine.headers, "webhook-signature": "v1,§" } },
    undated: { ...genuine, headers: { ...genuine.headers, "webhook-timestamp": "now" } },
  };
  await writeFile(join(python.directory, "deliveries.json"), JSON.stringify(cases));
  const program = `import json
from pilothouse import webhooks
accepted = []
for name, delivery in json.load(open("deliveries.json")).items():
    try:
        assert webhooks.verify(**delivery)["id"] == "evt_1"
        accepted.append(name)
    except webhooks.WebhookVerificationError:
        pass
print(json.dumps(accepted))
`;
  await writeFile(join(python.directory, "deliveries.py"), program);
  const { stdout } = await python.run("python", "deliveries.py");
  expect(JSON.parse(stdout)).toEqual(["genuine", "slow", "fast", "rotated", "tolerated"]);
});
