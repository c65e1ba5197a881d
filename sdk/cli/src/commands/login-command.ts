import { createInterface } from "node:readline/promises";
import { Pilothouse } from "../../../typescript/src/index.ts";
import type { Command } from "../command.ts";
import { findUrl, storeCredentials } from "../credentials.ts";
import { UsageError } from "../usage-error.ts";

/** Stores a key after the service has accepted it. Reads it from standard input, so that no process list has it. */
export const loginCommand: Command = {
  summary: "reads an API key from standard input, checks and stores it",
  positionals: "",
  count: [0, 0],
  async run({ env, stdin, output, signal }) {
    const url = findUrl(env);
    if (!output.isJson) output.progress(`API key for ${url}:`);
    const lines = createInterface({ input: stdin });
    const next = await lines[Symbol.asyncIterator]().next();
    lines.close();
    const key = String(next.value ?? "").trim();
    if (key === "") throw new UsageError("expected an API key in standard input, got none");
    await new Pilothouse({ apiKey: key, baseUrl: url }).request("GET", "/v1/account/rate-limits", {}, { signal });
    const path = storeCredentials(env, { url, key });
    output.result({ url, file: path }, `stored the key for ${url} in ${path}`);
  },
};
