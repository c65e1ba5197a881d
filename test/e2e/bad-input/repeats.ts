import { expect, test } from "vitest";
import { addAccount, addKey, freshKey } from "../support/accounts.ts";
import { expectProblem, send } from "../support/problem.ts";
import { type GetScene, pathOf, sessionEndpoints } from "./scene.ts";

/** Repeated requests, and requests to ended sessions. */
export function repeatTests(scene: GetScene): void {
  const create = (key: string, body: object) =>
    send(scene().service, { path: "/v1/sessions", body, headers: { "idempotency-key": key } });

  test("a create with a known Idempotency-Key replays the response, or is a conflict if the body differs", async () => {
    const key = freshKey();
    const body = { labels: { once: "only" } };
    const isReplay = ({ headers }: { headers: Headers }) => headers.get("idempotency-replayed") === "true";
    const running = [create(key, body), create(key, body)];
    const [first, meanwhile] = (await Promise.all(running)).toSorted(
      (a, b) => Number(isReplay(a)) - Number(isReplay(b)),
    );
    if (!first || !meanwhile) throw new Error("both requests are answered");
    expect([first.status, meanwhile.status, isReplay(meanwhile)]).toEqual([201, 201, true]);
    expect(meanwhile.text).toBe(first.text);
    const again = await create(key, body);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
    expect(again.text).toBe(first.text);
    expect(first.headers.has("idempotency-replayed")).toBe(false);
    expectProblem(await create(key, {}), {
      status: 409,
      slug: "conflict",
      detail: "the first request with this Idempotency-Key had a different method, path or body: use a new key",
    });
    const { id } = JSON.parse(first.text);
    expect((await send(scene().service, { method: "DELETE", path: `/v1/sessions/${id}` })).status).toBe(204);
  });

  test("a failure is replayed for its Idempotency-Key", async () => {
    const key = freshKey();
    const body = { profile_id: "prf_none" };
    const first = await create(key, body);
    const again = await create(key, body);
    expectProblem(again, { status: 404, slug: "not-found", detail: "no profile has this id" });
    expect([first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")]).toEqual([
      null,
      "true",
    ]);
  });

  test.each(["", "x".repeat(256)])("the Idempotency-Key %j is refused by all endpoints that read it", async (key) => {
    const { service, sessionId } = scene();
    const detail = "Idempotency-Key: must have 1 to 255 characters";
    const headers = { "idempotency-key": key };
    for (const [path, body] of [
      ["/v1/sessions", {}],
      ["/v1/profiles", { name: "Never" }],
      [`/v1/sessions/${sessionId}/navigate`, { url: "about:blank" }],
      [`/v1/sessions/${sessionId}/interact`, { action: { kind: "scroll", dy: 1 } }],
    ] as const) {
      expectProblem(await send(service, { path, body, headers }), { status: 400, slug: "bad-request", detail });
    }
  });

  test("a response is only replayed to the caller that received it first", async () => {
    const { service } = scene();
    const mine = { url: service.url, key: await addAccount(service) };
    const other = { url: service.url, key: await addKey(service, mine.key) };
    const profile = { path: "/v1/profiles", body: { name: "Mine" }, headers: { "idempotency-key": freshKey() } };
    expect((await send(mine, profile)).status).toBe(201);
    expectProblem(await send(other, profile), {
      status: 409,
      slug: "conflict",
      detail: "the first request with this Idempotency-Key was sent by another caller: use a new key",
    });
  });

  test("a command with a known Idempotency-Key runs once, and is a conflict if the body differs", async () => {
    const { service, sessionId } = scene();
    const path = `/v1/sessions/${sessionId}/navigate`;
    const headers = { "idempotency-key": freshKey() };
    const first = await send(service, { path, body: { url: "about:blank" }, headers });
    const again = await send(service, { path, body: { url: "about:blank" }, headers });
    expect([first.status, again.text]).toEqual([200, first.text]);
    const marks = [first, again].map((answer) => answer.headers.get("idempotency-replayed"));
    expect(marks).toEqual([null, "true"]);
    const other = await send(service, { path, body: { url: "about:blank", timeout_ms: 1000 }, headers });
    expectProblem(other, { status: 409, slug: "conflict" });
  });

  test("every operation on an ended session is refused with session-destroyed", async () => {
    const { service } = scene();
    const { id } = JSON.parse((await send(service, { path: "/v1/sessions", body: {} })).text);
    expect((await send(service, { method: "DELETE", path: `/v1/sessions/${id}` })).status).toBe(204);
    // Logs and the list of files are kept beyond the end.
    const isKept = ({ verb, path }: (typeof sessionEndpoints)[number]) =>
      path.includes("/logs") || (verb === "GET" && path.endsWith("/files"));
    for (const endpoint of sessionEndpoints.filter((each) => !isKept(each))) {
      const answer = await send(service, {
        method: endpoint.verb,
        path: pathOf(endpoint, id),
        ...("body" in endpoint && { body: endpoint.body }),
      });
      expectProblem(answer, { status: 410, slug: "session-destroyed", extensions: { ended_reason: "destroyed" } });
    }
    const list = await send(service, { path: "/v1/sessions?status=destroyed&limit=1" });
    expect(JSON.parse(list.text).data).toMatchObject([{ id, status: "destroyed" }]);
  });
}
