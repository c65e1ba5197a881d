// Worker that will be killed: launches a browser in each runtime, reports its pids and waits. The argument is the
// directory for the files of its browsers.
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { executables, keepingLog, runtimes } from "./world.ts";

/** The browser process, a renderer and the GPU process. */
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
    // On a busy machine, child processes start after the launch was reported.
    do {
      const { processInfo } = await browserSession.send("SystemInfo.getProcessInfo");
      pids = processInfo.map(({ id }) => id);
    } while (pids.length < processes);
    return { directory: slot.directory, pids };
  }),
);
process.stdout.write(`${JSON.stringify(launched)}\n`);
