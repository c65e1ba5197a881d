import type { Command } from "./command.ts";
import { keysCommand, recipesCommand } from "./commands/account-commands.ts";
import { agentCommand } from "./commands/agent-command.ts";
import { listenCommand } from "./commands/listen-command.ts";
import { loginCommand } from "./commands/login-command.ts";
import { logsCommand } from "./commands/logs-command.ts";
import { mcpCommand } from "./commands/mcp-command.ts";
import { pdfCommand, readCommand, shotCommand } from "./commands/page-commands.ts";
import { cdpCommand, endCommand, openCommand, sessionsCommand } from "./commands/session-commands.ts";
import { completionScript, shells } from "./completion.ts";
import { UsageError } from "./usage-error.ts";

const completionCommand: Command = {
  summary: "prints the completion script of a shell",
  positionals: shells.join(" | "),
  count: [1, 1],
  async run({ positionals: [shell = ""], output }) {
    const script = completionScript(shell, commands);
    if (script === undefined) throw new UsageError(`expected ${shells.join(", ")}, got ${shell}`);
    await output.raw(script);
  },
};

/** Commands by name, in the order of the help. */
export const commands: Readonly<Record<string, Command>> = {
  open: openCommand,
  sessions: sessionsCommand,
  end: endCommand,
  shot: shotCommand,
  pdf: pdfCommand,
  read: readCommand,
  run: agentCommand,
  recipes: recipesCommand,
  cdp: cdpCommand,
  logs: logsCommand,
  listen: listenCommand,
  keys: keysCommand,
  login: loginCommand,
  mcp: mcpCommand,
  completion: completionCommand,
};
