// In place of a worker: reports its environment variables and runs until it is terminated.
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const { DATA_DIR = "", CONTROL, WORKER_LISTEN, WORKER_TOKEN, DATABASE_URL } = process.env;
const line = JSON.stringify({ pid: process.pid, CONTROL, WORKER_LISTEN, WORKER_TOKEN, DATABASE_URL });
appendFileSync(join(DATA_DIR, "starts.jsonl"), `${line}\n`);
process.on("SIGTERM", () => process.exit(0));
setInterval(() => undefined, 1_000);
