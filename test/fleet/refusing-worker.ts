// In place of a worker that cannot run on this machine: records its start, prints the reason and exits.
import { appendFileSync } from "node:fs";
import { join } from "node:path";

appendFileSync(join(process.env.DATA_DIR ?? "", "starts.jsonl"), `${JSON.stringify({ pid: process.pid })}\n`);
process.stderr.write('{"msg":"a line of the log"}\nthe worker does not start: no network.\nMissing: everything.\n');
process.exit(1);
