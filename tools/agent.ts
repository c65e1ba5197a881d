// npm run agent -- "<what to do>": has an agent of the running service do something, and prints its steps.
import { parseArgs } from "node:util";
import { StartRefused } from "../src/platform/start-refused.ts";
import { runAgent } from "./agent/run-agent.ts";
import { print, readService, runCommand } from "./run-command.ts";

const help = `npm run agent -- "What is on example.com?"

Has an agent of the service at PILOTHOUSE_URL (default http://localhost:8080) do something, with the key in PILOTHOUSE_KEY
(scopes agent_sessions:write and sessions:write), and prints its steps and a link at which to watch and to take control. The
model is paid for by the account, or for this turn alone by the key in LLM_KEY; then LLM_MODEL names provider and model, such
as anthropic/claude-haiku-4-5. Ctrl-C ends the agent.`;

await runCommand(async (signal) => {
  const { values, positionals } = parseArgs({ options: { help: { type: "boolean" } }, allowPositionals: true });
  if (values.help) return print(help);
  const text = positionals.join(" ");
  if (text === "") throw new StartRefused('say what to do, such as: npm run agent -- "What is on example.com?"');
  const { service, key, read } = readService();
  const llm = { model: read.text("LLM_MODEL"), llmKey: read.text("LLM_KEY") };
  if (!(await runAgent({ service, key, text, print, ...llm }, signal))) process.exitCode = 1;
});
