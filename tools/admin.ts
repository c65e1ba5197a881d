// npm run admin -- <command>: what an operator does that has no endpoint.
import { runAdmin } from "./admin/run-admin.ts";

process.exitCode = await runAdmin(process.argv.slice(2), process.env, process);
