// npm run listen -- --forward <address>: forwards an account's events to a program on this machine, signed as webhooks are.
import { parseArgs } from "node:util";
import { ConfigError, readerOf } from "../src/platform/environment.ts";
import { StartRefused } from "../src/platform/start-refused.ts";
import { newSecret } from "../src/webhooks/endpoint-secrets.ts";
import { forwardEvents } from "./listen/forward-events.ts";

const help = `npm run listen -- --forward http://127.0.0.1:3000/hooks

Takes the events of your account from the service at PILOTHOUSE_URL (default http://localhost:8080), with the key in
PILOTHOUSE_KEY (scope webhooks:read), and sends each to a program of yours as a webhook is sent, signed with a secret that is
printed at the start. It goes on where it was when the connection breaks, until Ctrl-C ends it.`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Does what the command line says, until the signal aborts. */
async function run(signal: AbortSignal): Promise<void> {
  const { values } = parseArgs({ options: { forward: { type: "string" }, help: { type: "boolean" } } });
  if (values.help) return print(help);
  const forward = URL.parse(values.forward ?? "");
  if (!forward)
    throw new StartRefused("--forward accepts an address such as http://127.0.0.1:3000/hooks, and is needed");
  const read = readerOf(process.env);
  const service = read.url("PILOTHOUSE_URL", ["http:", "https:"]) ?? "http://localhost:8080";
  const key = read.text("PILOTHOUSE_KEY");
  if (key === undefined)
    throw new StartRefused("PILOTHOUSE_KEY is needed: the key of an account, such as `npm start` makes");
  const secret = newSecret();
  print(`Events of ${service} go to ${forward.href}, signed with ${secret}`);
  await forwardEvents({ service, key, forward, secret, print }, signal);
}

const ending = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => ending.abort());

try {
  await run(ending.signal);
} catch (error) {
  if (!ending.signal.aborted) {
    const isOurs = error instanceof StartRefused || error instanceof ConfigError;
    const isForeseen = isOurs || (error instanceof TypeError && "code" in error);
    const [sentence = ""] = isForeseen
      ? error.message.split("\n")
      : [error instanceof Error ? error.stack : String(error)];
    process.stderr.write(`pilothouse: ${sentence}\n`);
    process.exitCode = 1;
  }
}
