// npm run listen -- --forward <url>: forwards an account's events to a local program, signed as webhooks.
import { parseArgs } from "node:util";
import { StartRefused } from "../src/platform/start-refused.ts";
import { newEndpointSecret } from "../src/webhooks/endpoint-secrets.ts";
import { forwardEvents } from "./listen/forward-events.ts";
import { print, readService, runCommand } from "./run-command.ts";

const help = `npm run listen -- --forward http://127.0.0.1:3000/hooks

Reads the events of your account from the service at PILOTHOUSE_URL (default http://localhost:8080), with the key in
PILOTHOUSE_KEY (scope webhooks:read), and sends each to your program as a webhook, signed with a secret that is printed at
the start. After a connection failure, continues at the same event. Ctrl-C ends it.`;

await runCommand(async (signal) => {
  const { values } = parseArgs({ options: { forward: { type: "string" }, help: { type: "boolean" } } });
  if (values.help) return print(help);
  const forward = URL.parse(values.forward ?? "");
  if (!forward)
    throw new StartRefused("--forward accepts an address such as http://127.0.0.1:3000/hooks, and is needed");
  const { service, key } = readService();
  const secret = newEndpointSecret();
  await forwardEvents({ service, key, forward, secret, print }, signal);
});
