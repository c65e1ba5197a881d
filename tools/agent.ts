// npm run agent -- "<instruction>": runs an agent on the service, and prints its steps.
import { parseArgs } from "node:util";
import { StartRefused } from "../src/platform/start-refused.ts";
import { runAgent } from "./agent/run-agent.ts";
import { print, readService, runCommand } from "./run-command.ts";

const help = `npm run agent -- "What is on example.com?"

Runs an agent on the service at PILOTHOUSE_URL (default http://localhost:8080), with the key in PILOTHOUSE_KEY (scopes
agent_sessions:write and sessions:write). Prints its steps and a link to watch and control it. The account pays for the
model. If LLM_KEY is set, its owner pays for this turn; then LLM_MODEL names provider and model, such as
anthropic/claude-haiku-4-5. Ctrl-C ends the agent.`;

await runCommand(async (signal) => {
  const { values, positionals } = parseArgs({ options: { help: { type: "boolean" } }, allowPositionals: true });
  if (values.help) return print(help);
  const text = positionals.join(" ");
  if (text === "")
    throw new StartRefused('expected an instruction, such as: npm run agent -- "What is on example.com?"');
  const { service, key, read } = readService();
  const llm = { model: read.text("LLM_MODEL"), llmKey: read.text("LLM_KEY") };
  if (!(await runAgent({ service, key, text, print, ...llm }, signal))) process.exitCode = 1;
});
