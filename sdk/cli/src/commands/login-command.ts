import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { Pilothouse } from "../../../typescript/src/index.ts";
import type { Command, Invocation } from "../command.ts";
import { findUrl, storeCredentials } from "../credentials.ts";
import { UsageError } from "../usage-error.ts";

/** Reads a line. A terminal does not show it. */
async function readSecret(input: Invocation["stdin"], signal: AbortSignal): Promise<string> {
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, signal, ...(input.isTTY && { output: hidden, terminal: true }) });
  // While readline hides the input, Ctrl-C is a key and sends no signal.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  const next = await lines[Symbol.asyncIterator]().next();
  lines.close();
  signal.throwIfAborted();
  return String(next.value ?? "").trim();
}

/**
 * Stores a key after the service has accepted it. Reads the key from standard input, so that process lists do not show
 * it.
 */
export const loginCommand: Command = {
  summary: "reads an API key from standard input, checks and stores it",
  positionals: "",
  count: [0, 0],
  async run({ env, stdin, output, signal }) {
    const url = findUrl(env);
    if (!output.isJson) output.progress(`API key for ${url}:`);
    const key = await readSecret(stdin, signal);
    if (stdin.isTTY) output.progress("");
    if (key === "") throw new UsageError("expected an API key in standard input, got none");
    await new Pilothouse({ apiKey: key, baseUrl: url }).request("GET", "/v1/account/rate-limits", {}, { signal });
    const path = storeCredentials(env, { url, key });
    output.result({ url, file: path }, `stored the key for ${url} in ${path}`);
  },
};
