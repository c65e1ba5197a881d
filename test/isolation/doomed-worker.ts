// A worker that is going to be killed: launches a browser in each runtime, says so, and waits. Its argument is where the
// files of its browsers lie.
import { launchBrowser } from "../../workers/slots/browser-process.ts";
import { SlotPool } from "../../workers/slots/slot-pool.ts";
import { executables, keepingLog, RUNTIMES } from "./world.ts";

const pool = new SlotPool({ size: RUNTIMES.length, executables, log: keepingLog(), scratch: process.argv[2] });
await pool.start();
const launched = await Promise.all(
  RUNTIMES.map(async (runtime) => {
    const slot = pool.acquire();
    if (!slot) throw new Error("a new pool has too few slots");
    const { browserSession } = await launchBrowser(slot, { runtime });
    const { processInfo } = await browserSession.send("SystemInfo.getProcessInfo");
    return { directory: slot.directory, pids: processInfo.map(({ id }) => id) };
  }),
);
process.stdout.write(`${JSON.stringify(launched)}\n`);
