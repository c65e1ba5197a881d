// Stands for a worker: says which variables it got, and runs until it is told to end.
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const { DATA_DIR = "", CONTROL, WORKER_LISTEN, WORKER_TOKEN, DATABASE_URL } = process.env;
const line = JSON.stringify({ pid: process.pid, CONTROL, WORKER_LISTEN, WORKER_TOKEN, DATABASE_URL });
appendFileSync(join(DATA_DIR, "starts.jsonl"), `${line}\n`);
process.on("SIGTERM", () => process.exit(0));
setInterval(() => undefined, 1_000);
