import type { Page } from "playwright";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { orderOf, twentyCommands, twentyInOrder } from "../support/drive-commands.ts";
import type { ClientTarget, PageClient } from "../support/page-client.ts";
import type { GetScene } from "./scene.ts";

declare const pilothouse: PageClient;

const exposed = [
  "x-request-id",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-ratelimit-bucket",
];

/** Requests of a page of another origin in a real browser. */
export function pageTests(scene: GetScene): void {
  async function inPage<T>(
    origin: "permitted" | "foreign",
    run: (page: Page, target: ClientTarget) => Promise<T>,
  ): Promise<T> {
    const { service, page: other } = scene();
    const page = await other.open(origin);
    try {
      return await run(page, { url: service.url, key: service.key });
    } finally {
      await page.close();
    }
  }

  test("a page of CORS_ORIGINS can read REST responses, problems and their headers", () =>
    inPage("permitted", async (page, target) => {
      const read = (path: string) => page.evaluate(([from, at]) => pilothouse.rest(from, at), [target, path] as const);
      const list = await read("/v1/sessions?limit=1");
      expect(Object.keys(list.headers)).toEqual(expect.arrayContaining(exposed));
      expect(list.headers["x-request-id"]).toBe("from-the-page");
      const problem = await read("/v1/sessions/ses_x");
      expect(problem.headers).toMatchObject({ "content-type": "application/problem+json" });
      expect(JSON.parse(problem.text)).toMatchObject({ status: 404, instance: "from-the-page" });
    }));

  test.each(["connect", "grpc-web"] as const)("connect-web can call %s from a page of CORS_ORIGINS", (protocol) =>
    inPage("permitted", async (page, target) => {
      const id = scene().sessionId;
      const seen = await page.evaluate(([name, from, session]) => pilothouse.rpc(name, from, session), [
        protocol,
        target,
        id,
      ] as const);
      expect(seen.text).toBe("1 page, true");
      expect(Object.keys(seen.headers)).toEqual(expect.arrayContaining(exposed));
    }),
  );

  test("a WebSocket answers twenty commands in order, and sends a capture in chunks", () =>
    inPage("permitted", async (page, target) => {
      const id = scene().sessionId;
      const asJson = twentyCommands(scene().site.url("/form.html")).map(({ id: name, ...command }) => ({
        id: name,
        ...inRestJson(command),
      }));
      const commands = [...asJson, { id: "shot", capture: { kind: "screenshot" } }, { id: "bad", nothing: 1 }];
      const { answers, code, protocol } = await page.evaluate(
        ([from, session, all]) => pilothouse.drive(from, session, all),
        [target, id, commands] as const,
      );
      expect([code, protocol]).toEqual([1000, "pilothouse.v1"]);
      const own = answers as Record<string, never>[];
      const shot = own.filter((answer) => answer.id === "shot");
      const [header, ...chunks] = shot;
      expect(header?.capture).toMatchObject({ kind: "screenshot", content_type: "image/png" });
      const bytes = Buffer.concat(chunks.map(({ chunk }) => Buffer.from(chunk ?? "", "base64")));
      expect(bytes.length).toBe((header?.capture as { bytes: number } | undefined)?.bytes);
      expect(own.find((answer) => answer.id === "bad")?.error).toMatchObject({
        status: 400,
        detail: "nothing: is not a known field",
      });
      expect(orderOf(own).filter((name) => /^\d/.test(name))).toEqual(twentyInOrder);
    }));

  test("a page of any other origin cannot read a response of any protocol", () =>
    inPage("foreign", async (page, target) => {
      const id = scene().sessionId;
      const refused = (call: Promise<unknown>) => expect(call).rejects.toThrow("Failed to fetch");
      await refused(page.evaluate((from) => pilothouse.rest(from, "/v1/sessions"), target));
      for (const protocol of ["connect", "grpc-web"] as const) {
        await refused(
          page.evaluate(([name, from, at]) => pilothouse.rpc(name, from, at), [protocol, target, id] as const),
        );
      }
      const { answers, code } = await page.evaluate(
        ([from, session]) => pilothouse.drive(from, session, [{ id: "1", state: {} }]),
        [target, id] as const,
      );
      expect([answers, code]).toEqual([[], 1006]);
    }));

  test("an opaque origin, such as a sandboxed frame's, is refused with 400", async () => {
    const { service } = scene();
    const socket = new WebSocket(`${service.url.replace("http", "ws")}/v1/sessions/ses_x/drive`, {
      headers: { origin: "null", authorization: `Bearer ${service.key}` },
    });
    const status = await new Promise((resolve) => {
      socket.on("unexpected-response", (_request, response) => resolve(response.statusCode));
    });
    expect(status).toBe(400);
  });
}

/** Converts a oneof from proto to REST JSON: `{scroll: {...}}` becomes `{action: {kind: "scroll", ...}}`. */
function inRestJson(command: Record<string, unknown>): Record<string, unknown> {
  const members = { interact: "action", wait: "condition" } as const;
  return Object.fromEntries(
    Object.entries(command).map(([name, value]) => {
      if (name !== "interact" && name !== "wait") return [name, value];
      const [[kind, fields] = []] = Object.entries(value as Record<string, object>);
      return [name, { [members[name]]: { kind, ...fields } }];
    }),
  );
}
