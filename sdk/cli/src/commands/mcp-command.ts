import type { Command } from "../command.ts";
import { findCredentials } from "../credentials.ts";

/** Bridges an MCP client on standard input and output to the server of the service. */
export const mcpCommand: Command = {
  summary: "serves the Model Context Protocol on standard input and output, by the server of the service",
  positionals: "",
  count: [0, 0],
  async run({ env, stdin, stdout, output, signal }) {
    const { url, key } = findCredentials(env);
    // Loads the packages only for this command, because they take most of the time of a start.
    const { bridgeMcp } = await import("./mcp-bridge.ts");
    await bridgeMcp({ url: new URL(`${url}/mcp`), key, stdin, stdout, report: output.progress }, signal);
  },
};
