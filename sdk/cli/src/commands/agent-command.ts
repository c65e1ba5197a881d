import { readFile } from "node:fs/promises";
import type { TranscriptEntry } from "../../../typescript/src/index.ts";
import type { Command } from "../command.ts";
import { oneLine } from "../output.ts";
import { UsageError } from "../usage-error.ts";

/** Formats a transcript entry as one line. */
function lineOf({ role, content }: TranscriptEntry): string {
  if (content.kind === "text") return `${role}: ${content.text}`;
  if (content.kind === "control") return `${role}: ${content.control.state}`;
  const failed = content.error ? ` failed: ${content.error.detail ?? content.error.title}` : "";
  return `${role}: ${content.name} ${JSON.stringify(content.arguments ?? {})} (${content.duration_ms} ms)${failed}`;
}

async function readSchema(path: string): Promise<object> {
  const text = await readFile(path, "utf8");
  try {
    const schema: unknown = JSON.parse(text);
    if (typeof schema === "object" && schema !== null) return schema;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UsageError(`expected a JSON Schema in ${path}, got other content`);
}

/** Runs an agent. Its steps and a link to watch it are written to standard error. */
export const agentCommand: Command = {
  summary: "runs a task by an agent, in a session of its own",
  positionals: "TASK...",
  count: [1, 1_000],
  options: {
    session: { type: "string", value: "ID", help: "use a session, which continues" },
    model: { type: "string", value: "NAME", help: "model, such as anthropic/claude-haiku-4-5; default: LLM_MODEL" },
    schema: { type: "string", value: "FILE", help: "JSON Schema of the result" },
  },
  async run({ client, positionals, values, output, signal, env }) {
    const [id, schema] = [values.text("session"), values.text("schema")];
    const model = values.text("model") ?? env.LLM_MODEL;
    const { sessions, agents } = client();
    // Agents drive sessions of this runtime.
    const request = { runtime: "chromium" } as const;
    const session = id === undefined ? await sessions.create(request, { signal }) : await sessions.get(id, { signal });
    try {
      output.progress(`Watch it, and take control, at ${await session.liveUrl({ control: true }, { signal })}`);
      const result = await agents.run(positionals.join(" "), {
        signal,
        sessionId: session.id,
        ...(model && { session: { model } }),
        ...(env.LLM_KEY && { llmKey: env.LLM_KEY }),
        ...(schema !== undefined && { schema: await readSchema(schema) }),
        onStep: (entry) => output.progress(oneLine(lineOf(entry))),
        onPersonNeeded: ({ instructions, liveUrl }) =>
          output.progress(`A person is needed: ${oneLine(instructions)} ${liveUrl}`),
      });
      const text = result.output === undefined ? result.text : JSON.stringify(result.output, undefined, 2);
      output.result({ text: result.text, output: result.output, turn: result.turn }, text);
    } finally {
      if (id === undefined) await session.end();
    }
  },
};
