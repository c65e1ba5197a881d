// Starts a pool where the kernel grants less than usual, and prints what came of it as JSON.
import { SlotPool } from "../../workers/slots/slot-pool.ts";
import { executables, keepingLog } from "./world.ts";

const log = keepingLog();
const pool = new SlotPool({ size: 1, executables, log });
await pool.start();
const { isolation, sandbox } = pool;
await pool.stop();
process.stdout.write(JSON.stringify({ isolation, sandbox, complaints: log.complaints }));
