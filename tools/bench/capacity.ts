import { create } from "@bufbuild/protobuf";
import { CreateSessionRequestSchema, NavigateRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { MemoryCgroup } from "../../test/support/memory-cgroup.ts";
import { startSessionsApp } from "../../test/support/sessions-app.ts";
import { startWorkerProcess } from "../../test/support/worker-process.ts";
import type { Bench, Row } from "./bench.ts";
import { startSite } from "./site.ts";

const gibibyte = 2 ** 30;

/** Capacity of the worker, above the number of sessions that memory allows. */
const slots = 256;

/** Milliseconds in which the worker must be ready. */
const startMs = 30_000;

/** Number of concurrent sessions until memory pressure closes the worker. */
export const capacity: Bench = {
  name: "capacity",
  title: "sessions with one page each that a worker in a control group holds at once, until pressure closes it",
  async run(scale): Promise<Row[]> {
    const gibibytes = scale.of(8, 2);
    await using site = await startSite();
    using cgroup = new MemoryCgroup(gibibytes * gibibyte);
    await using running = await startSessionsApp({ QUEUE_MS: "0" });
    const env = { EGRESS_ALLOW: site.host, WORKER_SLOTS: String(slots), WARM_BROWSERS: "1" };
    await using worker = startWorkerProcess(running.app, env, cgroup.directory);
    const call = await running.caller();
    const begin = async (): Promise<boolean> => {
      const session = await running.sessions
        .create(call(), create(CreateSessionRequestSchema, {}))
        .catch(() => undefined);
      if (!session) return false;
      await running.sessions.navigate(call(), create(NavigateRequestSchema, { id: session.id, url: site.formUrl }));
      return true;
    };
    if (!(await waitUntil(begin, { timeout: startMs, every: 100 }))) throw new Error("the worker takes no session");
    let held = 1;
    const beganAt = performance.now();
    while (held < slots && (await begin())) held += 1;
    const seconds = (performance.now() - beganAt) / 1_000;
    const closed = /"closedBy":"(\w+)"/.exec(worker.output())?.[1] ?? "nothing";
    return [
      {
        what: `a group of ${gibibytes} GiB`,
        ours: `${held} sessions`,
        bare: "",
        verdict: `closed by ${closed} after ${seconds.toFixed(0)} s; ${((gibibytes * 1_024) / held).toFixed(0)} MiB each (no bar)`,
      },
    ];
  },
};
