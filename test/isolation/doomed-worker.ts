// A worker that is going to be killed: launches a browser in each runtime, says so, and waits. Its argument is where the
// files of its browsers lie.
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { executables, keepingLog, runtimes } from "./world.ts";

/** A browser's own, its renderer's, and that of the graphics. */
const processes = 3;

const pool = new SlotPool({ size: runtimes.length, executables, log: keepingLog(), scratch: process.argv[2] });
await pool.start();
const launched = await Promise.all(
  runtimes.map(async (runtime) => {
    const slot = pool.acquire();
    if (!slot) throw new Error("a new pool has too few slots");
    const { browserSession } = await launchBrowser(slot, { runtime, signal: AbortSignal.timeout(30_000) });
    await browserSession.send("Target.createTarget", { url: "about:blank" });
    let pids: number[];
    // A busy machine starts the browser's helpers after its launch has been answered.
    do {
      const { processInfo } = await browserSession.send("SystemInfo.getProcessInfo");
      pids = processInfo.map(({ id }) => id);
    } while (pids.length < processes);
    return { directory: slot.directory, pids };
  }),
);
process.stdout.write(`${JSON.stringify(launched)}\n`);
