import { afterAll, beforeAll, expect, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../../support/cdp-proxy-scene.ts";
import { LiveClient } from "../../support/live-client.ts";

let scene: CdpScene;
/** Paths of an agent session and of its browser session. */
let agent: string;
let session: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  const { body } = await scene.rest("/v1/agent-sessions", {});
  agent = `/v1/agent-sessions/${body.id}`;
  session = `/v1/sessions/${body.session_id}`;
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);

const slugOf = ({ body }: { readonly body: { readonly type?: string } }) => body.type?.split("/").at(-1);

/** Joins with a request that is refused, and returns the close reason. */
async function refusalOf(key: string, join: object): Promise<string> {
  using viewer = await LiveClient.join(scene.service.url, key, join);
  return (await viewer.closed).reason;
}

test("a message requires a credential, which no deployment without agents has", async () => {
  const said = await scene.rest(`${agent}/message`, { text: "Go on." });
  expect([said.status, slugOf(said)]).toEqual([502, "byok-llm-required"]);
  expect((await scene.rest(`${agent}/message`, {})).body.errors).toEqual([
    { field: "text", message: expect.any(String) },
  ]);
});

test("an agent session without agents has no turns, no steps and an empty transcript", async () => {
  expect(slugOf(await scene.rest(`${agent}/turns/trn_1/cancel`, {}))).toBe("not-found");
  expect(slugOf(await scene.rest(`${agent}/turns/trn_1?wait_ms=1000`))).toBe("not-found");
  expect(slugOf(await scene.rest(`${agent}/steps/evt_1/screenshot`))).toBe("not-found");
  expect((await scene.rest(`${agent}/transcript`)).body).toEqual({ data: [], has_more: false, next_cursor: null });
  expect(slugOf(await scene.rest("/v1/agent-sessions/agt_1/transcript"))).toBe("not-found");
});

test("a media token requires a media server", async () => {
  const asked = await scene.rest(`${agent}/media-token`, {});
  expect([asked.status, slugOf(asked)]).toEqual([503, "feature-unavailable"]);
});

test("each GET creates a GUI control key, which is never cached, and other methods create none", async () => {
  const made = await scene.rest(`${agent}/gui-control-key?client_id=anna`);
  expect(made.status).toBe(200);
  expect(made.headers.get("cache-control")).toBe("no-store");
  const { key, expires_at: expiresAt, control_url: controlUrl, page_url: pageUrl } = made.body;
  const { port } = new URL(scene.service.url);
  expect(pageUrl).toBe(`http://localhost:${port}/live#${key}`);
  expect(controlUrl).toBe(`ws://localhost:${port}/v1/live`);
  expect(Math.abs(Date.parse(expiresAt) - Date.now() - 300_000)).toBeLessThan(60_000);
  expect((await scene.rest(`${agent}/gui-control-key`)).body.key).not.toBe(key);

  const headers = { authorization: `Bearer ${scene.service.key}` };
  const head = await fetch(`${scene.service.url}${agent}/gui-control-key`, { method: "HEAD", headers });
  expect([head.status, head.headers.get("allow")]).toEqual([405, "GET"]);
  const query = `?connect=v1&encoding=json&message=${encodeURIComponent(JSON.stringify({ id: agent.split("/").at(-1) }))}`;
  const got = await fetch(`${scene.service.url}/pilothouse.v1.AgentViewService/GetGuiControlKey${query}`, { headers });
  expect(got.status).toBe(405);
  const { body } = await scene.rest(`${session}/view-links`);
  expect(body.data.map(({ name, control }: { name: string; control: boolean }) => [name, control])).toEqual([
    [expect.stringMatching(/^key_/), true],
    ["anna", true],
  ]);
  expect((await scene.rest(`${agent}/gui-control-key?client_id=view:anna`)).body.errors).toMatchObject([
    { field: "client_id" },
  ]);
});

test("a GUI control key admits its first viewer, who may reconnect and take control", async () => {
  const { key } = (await scene.rest(`${agent}/gui-control-key?client_id=ben`)).body;
  const known = { viewer_key: "what the viewer has made up" };
  {
    using viewer = await LiveClient.join(scene.service.url, key, known);
    const { hello } = await viewer.receive((message) => message.hello);
    expect(hello.viewer).toMatchObject({ name: "ben", can_control: true, client_id: "ben" });
    viewer.send({ take_control: {} });
    await viewer.receive(({ state }) => state?.control.holder_client_id === "ben");
    viewer.send({ hand_back: {} });
    await viewer.receive(({ state }) => state?.control.state === "agent_control");
    expect(await refusalOf(key, {})).toContain("expired-key");
    expect(await refusalOf(key, { viewer_key: "another viewer's own secret" })).toContain("expired-key");
  }
  using again = await LiveClient.join(scene.service.url, key, known);
  await again.receive((message) => message.hello);

  const once = (await scene.rest(`${agent}/gui-control-key`)).body.key;
  {
    using viewer = await LiveClient.join(scene.service.url, once);
    await viewer.receive((message) => message.hello);
  }
  expect(await refusalOf(once, {})).toContain("expired-key");
}, 60_000);

test("a GUI control key opens only the live view", async () => {
  const { key } = (await scene.rest(`${agent}/gui-control-key`)).body;
  for (const path of [agent, `${session}/state`, `${agent}/gui-control-key`]) {
    const { status } = await fetch(scene.service.url + path, { headers: { authorization: `Bearer ${key}` } });
    expect(status, path).toBe(403);
  }
  const { body } = await scene.rest(`${session}/view-links`);
  using viewer = await LiveClient.join(scene.service.url, key);
  await viewer.receive((message) => message.hello);
  await scene.rest(`${session}/view-links/${body.data[0].id}`, undefined, { method: "DELETE" });
  expect((await viewer.closed).reason).toContain("revoked-key");
}, 60_000);
