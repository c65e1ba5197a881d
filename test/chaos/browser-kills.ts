import { beforeAll, expect, test } from "vitest";
import { withLong } from "../support/long-test.ts";
import { descendantsOf, describeProcess } from "../support/process-list.ts";
import { type DoomedService, inTime, verdict } from "./doomed-service.ts";
import { entryOf } from "./session-ledger.ts";

/** Milliseconds until a killed PostgreSQL has recovered: its processes must exit and its log is replayed. */
const recovery = 40_000;

/** Kills and hangs of a browser, of a page's process and of PostgreSQL. */
export function browserKillTests(doomedOf: () => DoomedService): void {
  let doomed: DoomedService;
  beforeAll(() => {
    doomed = doomedOf();
  });

  test.for(withLong(["headless-shell"], ["chromium"]))(
    "a session ends as errored when its %s is killed during a command",
    async (runtime) => {
      const session = await doomed.create({ runtime });
      const { answer } = await doomed.beginNavigation(session);
      const queued = doomed.rest(`${session}/wait`, { condition: { kind: "selector", selector: "#never" } });
      await doomed.kill(doomed.browserOfSession(runtime).pid);

      const { status, body } = await inTime(answer);
      expect([status, body.target_closed ?? body.ended_reason]).toEqual([502, true]);
      expect((await inTime(queued)).body).toMatchObject({ status: 410, ended_reason: "crashed" });
      for (const later of [doomed.rest(session), doomed.rest(`${session}/navigate`, { url: "about:blank" })]) {
        expect((await later).body).toMatchObject({
          status: 410,
          ended_reason: "crashed",
          ended_at: expect.any(String),
        });
      }
      expect(await entryOf(doomed, session)).toEqual({
        status: "errored",
        endedReason: "crashed",
        terminalEvents: ["session.failed"],
      });
    },
  );

  test("a session continues after its page's process was killed during a command", async () => {
    const session = await doomed.create();
    await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
    const running = doomed.rest(`${session}/wait`, { condition: { kind: "selector", selector: "#never" } });
    const renderers = descendantsOf(doomed.browserOfSession("headless-shell").pid).filter(({ command }) =>
      command.includes("--type=renderer"),
    );
    await doomed.kill(...renderers.map(({ pid }) => pid));

    const { status, body } = await inTime(running);
    expect([status, body.type]).toEqual([502, expect.stringMatching(/driver-error$/)]);
    expect(await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") })).toMatchObject({
      status: 200,
      body: { http_status: 200 },
    });
    expect((await entryOf(doomed, session))?.status).toBe("live");
    await doomed.destroy(session);
  });

  test("every operation returns by its deadline while the browser hangs, and destroy removes everything", async () => {
    const session = await doomed.create();
    const browser = doomed.browserOfSession("headless-shell");
    const pids = [browser, ...descendantsOf(browser.pid)].map(({ pid }) => pid);
    doomed.look();
    for (const pid of pids) process.kill(pid, "SIGSTOP");

    const short = { timeout_ms: 1_000 };
    const operations = [
      doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html"), ...short }),
      doomed.rest(`${session}/interact`, { action: { kind: "tap", x: 5, y: 5 }, ...short }),
      doomed.rest(`${session}/wait`, { condition: { kind: "selector", selector: "#never" }, ...short }),
      doomed.rest(`${session}/capture`, { kind: "screenshot" }, { headers: { "x-request-timeout-ms": "2000" } }),
      doomed.rest(`${session}/state`),
    ];
    const answers = await Promise.all(operations);
    expect(answers.map(({ status }) => status)).toEqual([504, 504, 504, 504, 200]);
    expect((await inTime(doomed.rest(session, undefined, { method: "DELETE" }))).status).toBe(204);
    await expect.poll(() => pids.filter((pid) => describeProcess(pid)), { timeout: verdict }).toEqual([]);
  }, 90_000);

  test("sessions outlive a killed PostgreSQL, and can be created again after its automatic restart", async () => {
    const session = await doomed.create();
    const navigate = () => doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
    expect((await navigate()).status).toBe(200);
    const { postmasterPid } = doomed;
    await doomed.kill(postmasterPid);

    expect((await navigate()).status).toBe(200);
    const { status, headers, body } = await doomed.rest("/v1/sessions", {});
    if (status !== 201) {
      expect([status, body.type, headers.get("retry-after")]).toEqual([500, expect.stringMatching(/internal$/), "1"]);
    }
    await expect
      .poll(async () => (await doomed.rest("/v1/sessions", {})).status, { timeout: recovery, interval: 200 })
      .toBe(201);
    expect(doomed.postmasterPid).not.toBe(postmasterPid);
    expect((await navigate()).status).toBe(200);
    expect(await entryOf(doomed, session)).toMatchObject({ status: "live", terminalEvents: [] });
  }, 90_000);
}
