// npm run admin -- <command>: operator commands without an endpoint.
import { runAdmin } from "./admin/run-admin.ts";

process.exitCode = await runAdmin(process.argv.slice(2), process.env, process);
