// npm run listen -- --forward <address>: forwards an account's events to a program on this machine, signed as webhooks are.
import { parseArgs } from "node:util";
import { StartRefused } from "../src/platform/start-refused.ts";
import { newSecret } from "../src/webhooks/endpoint-secrets.ts";
import { forwardEvents } from "./listen/forward-events.ts";
import { print, readService, runCommand } from "./run-command.ts";

const help = `npm run listen -- --forward http://127.0.0.1:3000/hooks

Takes the events of your account from the service at PILOTHOUSE_URL (default http://localhost:8080), with the key in
PILOTHOUSE_KEY (scope webhooks:read), and sends each to a program of yours as a webhook is sent, signed with a secret that is
printed at the start. It goes on where it was when the connection breaks, until Ctrl-C ends it.`;

await runCommand(async (signal) => {
  const { values } = parseArgs({ options: { forward: { type: "string" }, help: { type: "boolean" } } });
  if (values.help) return print(help);
  const forward = URL.parse(values.forward ?? "");
  if (!forward)
    throw new StartRefused("--forward accepts an address such as http://127.0.0.1:3000/hooks, and is needed");
  const { service, key } = readService();
  const secret = newSecret();
  await forwardEvents({ service, key, forward, secret, print }, signal);
});
