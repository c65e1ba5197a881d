import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { beforeAll, expect, test } from "vitest";
import type { OwnCdpScene } from "../support/cdp-proxy-scene.ts";
import type { LlmProvider } from "../support/llm-provider.ts";
import { longTest, withLong } from "../support/long-test.ts";
import type { OtlpReceiver, ReceivedSpan } from "../support/otlp-receiver.ts";

const collectorKey = "collector-key-x7";

/** Service that exports its traces to a receiver, by the variables of `tracesTo`. */
export interface TracedScene {
  readonly scene: OwnCdpScene;
  readonly provider: LlmProvider;
  readonly receiver: OtlpReceiver;
}

/** Variables of a service that exports its traces. */
export const tracesTo = ({ origin }: OtlpReceiver): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: origin,
  OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${collectorKey}`,
});

/** Span of a client, which calls the service within it. */
function clientSpan(flags = "01") {
  const [trace, id] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  return { trace, id, headers: { traceparent: `00-${trace}-${id}-${flags}` } };
}

/** Returns the names of a span and its ancestors, and the id at which the path leaves the received spans. */
function pathTo(span: ReceivedSpan | undefined, spans: readonly ReceivedSpan[]): { names: string[]; root: string } {
  if (!span) return { names: [], root: "no span" };
  const parent = spans.find(({ id }) => id === span.parent);
  const { names, root } = parent ? pathTo(parent, spans) : { names: [], root: span.parent };
  return { names: [...names, span.name], root };
}

/** Traces from clients to browsers and models. */
export function traceTests(tracedOf: () => TracedScene): void {
  let provider: LlmProvider;
  let receiver: OtlpReceiver;
  let scene: OwnCdpScene;
  beforeAll(() => {
    ({ provider, receiver, scene } = tracedOf());
  });

  const keys = withLong<[string, object]>([["stored", { provider: "anthropic" }]], [["in the header", {}]]);
  test.each(keys)(
    "an agent step with a key %s is one trace from the client to browser and model",
    async (_, stored) => {
      const client = clientSpan();
      const [typed, query, key] = ["typed-canary-x1", "query-canary-x2", "good-key-canary-x3"];
      const isStored = "provider" in stored;
      const setKey = { method: "PUT" };
      if (isStored) await scene.rest("/v1/account/me/byok-llm-key", { ...stored, api_key: key }, setKey);
      const url = scene.site.url(`/trip.html?${query}`);
      const { body: agent } = await scene.rest("/v1/agent-sessions", { model: "anthropic/claude-test" });
      expect(agent).toHaveProperty("id");
      const path = `/v1/agent-sessions/${agent.id}`;
      provider.say(
        { calls: [{ name: "navigate", input: { url } }] },
        ({ results }) => {
          const ref = /textbox "Name" ref=(s\d+e\d+)/.exec(results.at(-1) ?? "")?.[1];
          return { calls: [{ name: "act", input: { actions: [{ kind: "fill", ref, text: typed }] } }] };
        },
        { calls: [{ name: "done", input: { text: "It is written." } }] },
      );
      const { body: turn } = await scene.rest(
        `${path}/message`,
        { text: "prompt-canary-x4", wait_ms: 60_000 },
        { headers: { ...client.headers, ...(!isStored && { "x-byok-llm-api-key": key }) } },
      );
      expect(turn).toMatchObject({ status: "done", text: "It is written." });
      expect(provider.asked.at(-1)?.results.at(-1)).toContain(typed);
      const find = (name: string, spans: readonly ReceivedSpan[]) => spans.find((span) => span.name === name);
      const received = () => receiver.spansOf(client.trace);
      // Processes export their spans in batches, and a span after its children.
      const pathNamed = (name: string) => pathTo(find(name, received()), received());
      const inTurn = ["AgentTurnService.SendMessage", ...(isStored ? ["transaction"] : []), "agent turn"];
      await expect
        .poll(() => pathNamed("Page.navigate"))
        .toEqual({
          names: [...inTurn, "WorkerService.Navigate", "worker navigate", "Page.navigate"],
          root: client.id,
        });
      await expect.poll(() => pathNamed("chat")).toEqual({ names: [...inTurn, "chat"], root: client.id });
      const roots = () => new Set(received().map((span) => pathTo(span, received()).root));
      await expect.poll(roots).toEqual(new Set([client.id]));
      const spans = received();
      expect(spans.map(({ name }) => name)).toContain("transaction");
      expect(find("Page.navigate", spans)?.service).toBe("pilothouse-worker");
      expect(find("AgentTurnService.SendMessage", spans)).toMatchObject({
        service: "pilothouse-gateway",
        attributes: { "http.route": "/v1/agent-sessions/{id}/message", "http.request.method": "POST" },
      });
      expect(find("chat", spans)?.attributes).toMatchObject({
        "gen_ai.provider.name": "anthropic",
        "gen_ai.usage.input_tokens": 100,
      });

      const sent = Buffer.concat(receiver.bodies).toString("latin1");
      for (const secret of [
        typed,
        query,
        key,
        "trip.html",
        scene.site.host,
        "prompt-canary",
        "It is written",
        agent.id,
      ])
        expect(sent, secret).not.toContain(secret);
      expect(sent).not.toContain(scene.service.key);
      await scene.rest(path, undefined, { method: "DELETE" });
    },
  );

  longTest("a streamed response continues the trace in the worker", async () => {
    const client = clientSpan();
    const session = await scene.open();
    const { status } = await scene.rest(`${session}/capture`, { kind: "screenshot" }, { headers: client.headers });
    expect(status).toBe(200);
    const pathToShot = () => {
      const spans = receiver.spansOf(client.trace);
      const shot = spans.find(({ name }) => name === "Page.captureScreenshot");
      return pathTo(shot, spans);
    };
    await expect.poll(pathToShot).toEqual({
      names: ["SessionService.Capture", "worker capture", "Page.captureScreenshot"],
      root: client.id,
    });
    await scene.rest(session, undefined, { method: "DELETE" });
  });

  test("a failed call has the slug of its problem, and an unsampled one has no span", async () => {
    const [failed, unsampled] = [clientSpan(), clientSpan("00")];
    await scene.rest("/v1/account/me", undefined, { headers: unsampled.headers });
    await scene.rest("/v1/sessions/ses_missing-canary-x5", undefined, { headers: failed.headers });
    const callOf = () => receiver.spansOf(failed.trace).find(({ parent }) => parent === failed.id);
    await expect.poll(callOf).toBeDefined();
    const call = callOf();
    expect(call).toMatchObject({ isError: true, attributes: { "http.route": "/v1/sessions/{id}" } });
    expect(call?.attributes["error.type"]).toMatch(/^(not-found|validation-failed)$/);
    expect(Buffer.concat(receiver.bodies).toString("latin1")).not.toContain("missing-canary");
    expect(receiver.spansOf(unsampled.trace)).toEqual([]);
  });

  test("workers know neither the collector nor its credentials", async () => {
    const environment = await readFile(`/proc/${scene.service.pidOf("worker")}/environ`, "latin1");
    expect(environment).toContain("DATA_DIR=");
    expect(environment).not.toContain("OTEL_");
    expect(new Set(receiver.headers.map((headers) => headers["x-collector-key"]))).toEqual(new Set([collectorKey]));
  });
}
