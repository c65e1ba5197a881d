// npm run agent -- "<what to do>": has an agent of the running service do something, and prints its steps.
import { parseArgs } from "node:util";
import { ConfigError, readerOf } from "../src/platform/environment.ts";
import { StartRefused } from "../src/platform/start-refused.ts";
import { runAgent } from "./agent/run-agent.ts";

const help = `npm run agent -- "What is on example.com?"

Has an agent of the service at PILOTHOUSE_URL (default http://localhost:8080) do something, with the key in PILOTHOUSE_KEY
(scopes agent_sessions:write and sessions:write), and prints its steps and a link at which to watch and to take control. The
model is paid for by the account, or for this turn alone by the key in LLM_KEY; then LLM_MODEL names provider and model, such
as anthropic/claude-haiku-4-5. Ctrl-C ends the agent.`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Does what the command line says, until the signal aborts. */
async function run(signal: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({ options: { help: { type: "boolean" } }, allowPositionals: true });
  if (values.help) return print(help);
  const text = positionals.join(" ");
  if (text === "") throw new StartRefused('say what to do, such as: npm run agent -- "What is on example.com?"');
  const read = readerOf(process.env);
  const service = read.url("PILOTHOUSE_URL", ["http:", "https:"]) ?? "http://localhost:8080";
  const key = read.text("PILOTHOUSE_KEY");
  if (key === undefined)
    throw new StartRefused("PILOTHOUSE_KEY is needed: the key of an account, such as `npm start` makes");
  const llm = { model: read.text("LLM_MODEL"), llmKey: read.text("LLM_KEY") };
  if (!(await runAgent({ service, key, text, print, ...llm }, signal))) process.exitCode = 1;
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
