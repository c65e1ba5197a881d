import { beforeAll, expect, onTestFinished, test } from "vitest";
import { BareClient } from "../support/cdp-proxy-scene.ts";
import type { DeployedGateway, Deployment } from "../support/deployment.ts";
import type { FixtureSite } from "../support/fixture-site.ts";
import { withLong } from "../support/long-test.ts";

/** CDP clients of two gateways with workers, whose pages may reach a site. */
export function scaledClientTests(sceneOf: () => { deployment: Deployment; site: FixtureSite }): void {
  let site: FixtureSite;
  let deployment: Deployment;
  let one: DeployedGateway;
  let other: DeployedGateway;

  beforeAll(() => {
    ({ site, deployment } = sceneOf());
    [one, other] = [deployment.gateway(0), deployment.gateway(1)];
  });

  /** Creates a session with a form on a gateway, and returns the path of its CDP connection. */
  async function open(gateway: DeployedGateway) {
    const { status, body } = await gateway.rest("/v1/sessions", {});
    expect([status, body.detail]).toEqual([201, undefined]);
    const session = `/v1/sessions/${body.id}`;
    expect((await gateway.rest(`${session}/navigate`, { url: site.url("/form.html") })).status).toBe(200);
    const made = await gateway.rest(`${session}/cdp-url`, {});
    return { session, path: new URL(made.body.url).pathname };
  }

  async function connect(
    { url }: Pick<DeployedGateway, "url">,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<BareClient> {
    const client = await BareClient.connect(`${url.replace("http", "ws")}${path}`, headers);
    onTestFinished(() => client[Symbol.dispose]());
    return client;
  }

  test("a CDP client on one gateway and REST on the other control the same page", async () => {
    const { session, path } = await open(one);
    // Through the gateway that has created neither the session nor the address.
    const found = await (await fetch(`${other.url}${path}/json/version`)).json();
    const client = await connect(other, new URL(found.webSocketDebuggerUrl).pathname);
    const page = await client.attach();
    const evaluate = async (expression: string) =>
      (await client.send("Runtime.evaluate", { expression }, page)).result.result.value;
    const rounds = Array.from({ length: 20 }, (_, index) => index + 1);
    const tapAll = async () => {
      for (const _round of rounds)
        expect((await one.rest(`${session}/interact`, { action: { kind: "tap", selector: "#check" } })).status).toBe(
          200,
        );
    };
    const countAll = async () => {
      for (const round of rounds) expect(await evaluate("window.counted = (window.counted ?? 0) + 1")).toBe(round);
    };
    await Promise.all([tapAll(), countAll()]);
    expect(await evaluate("log.filter((line) => line.startsWith('click check')).length")).toBe(rounds.length);
    await evaluate("document.title = 'by the client'");
    for (const gateway of [one, other])
      expect((await gateway.rest(`${session}/state`)).body.title).toBe("by the client");
    expect((await other.rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    expect(await client.closed).toEqual({ code: 1000, reason: "session-destroyed" });
  }, 60_000);

  test("a killed gateway ends no session and disconnects only its own clients, which can reconnect to the other until revoked", async () => {
    const { session, path } = await open(other);
    const [near, far] = [await connect(one, path), await connect(other, path)];
    await far.send("Runtime.evaluate", { expression: "document.title = 'left here'" }, await far.attach());
    await other.kill();
    expect(await far.closed).toEqual({ code: 1006, reason: "" });
    expect((await near.send("Browser.getVersion")).error).toBeUndefined();
    expect((await one.rest(`${session}/state`)).body.title).toBe("left here");
    // A session has four connection slots. The worker releases the slot as soon as the client has disconnected.
    const back: BareClient[] = [];
    const comeBack = () => connect(one, path).then((client) => back.push(client), String);
    for (const count of [1, 2, 3]) await expect.poll(comeBack).toBe(count);
    const { result } = (await back[0]?.send("Target.getTargets")) ?? {};
    expect(result.targetInfos).toContainEqual(expect.objectContaining({ type: "page", title: "left here" }));
    await other.start();
    await expect(connect(other, path)).rejects.toThrow("429");

    const revokedAt = performance.now();
    expect((await other.rest(`${session}/cdp-url`, undefined, { method: "DELETE" })).status).toBe(204);
    const revoked = { code: 1008, reason: "revoked-key" };
    for (const client of [near, ...back]) expect(await client.closed).toEqual(revoked);
    expect(performance.now() - revokedAt).toBeLessThan(5_000);
    for (const gateway of [one, other]) await expect(connect(gateway, path)).rejects.toThrow("401");
    expect((await other.rest(session, undefined, { method: "DELETE" })).status).toBe(204);
  }, 90_000);

  function connectByName({ url }: DeployedGateway, name: string): Promise<BareClient> {
    return connect({ url }, `/connect?name=${name}`, { authorization: `Bearer ${deployment.key}` });
  }

  test.each(
    withLong<[string, (client: BareClient) => unknown, number]>(
      [["loses its gateway to SIGTERM", () => other.stop(), 1012]],
      [
        ["breaks its connection", ({ socket }) => socket.terminate(), 1006],
        ["loses its gateway to SIGKILL", () => other.kill(), 1006],
      ],
    ),
  )(
    "a client that %s connects to its session again by name through another gateway",
    async (what, lose, code) => {
      const name = what.replaceAll(" ", "-");
      const first = await connectByName(other, name);
      const id = first.sessionId;
      await first.send("Runtime.evaluate", { expression: "document.title = 'left'" }, await first.attach());
      await lose(first);
      expect((await first.closed).code).toBe(code);
      const second = await connectByName(one, name);
      expect(second.sessionId).toBe(id);
      const { result } = await second.send("Target.getTargets");
      expect(result.targetInfos).toContainEqual(expect.objectContaining({ type: "page", title: "left" }));
      if (!(await other.isReady())) await other.start();
      const third = await connectByName(other, name);
      expect(third.sessionId).toBe(id);
      // The session ends with its last client, on whichever gateway.
      second.socket.close(1000);
      await second.closed;
      expect((await third.send("Browser.getVersion")).error).toBeUndefined();
      third.socket.close(1000);
      const endOf = async () => {
        const { body } = await one.rest("/v1/sessions?limit=1");
        return [body.data[0].id, body.data[0].ended_reason];
      };
      await expect.poll(endOf).toEqual([id, "destroyed"]);
    },
    180_000,
  );
}
