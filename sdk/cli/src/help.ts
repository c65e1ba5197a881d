import type { Command, Option } from "./command.ts";

/** Options of every command. */
export const commonOptions: Readonly<Record<string, Option>> = {
  json: { type: "boolean", help: "write results as JSON. Default if the output is not a terminal" },
  help: { type: "boolean", short: "h", help: "show this help" },
};

/** Aligns the second of two columns. */
function align(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}\n`).join("");
}

/** Returns the help of the program. */
export function describeProgram(commands: Readonly<Record<string, Command>>): string {
  const rows = Object.entries(commands).map(
    ([name, { positionals, summary }]) => [`${name} ${positionals}`.trim(), summary] as const,
  );
  return `pilothouse COMMAND [OPTIONS]

${align(rows)}
The service is at PILOTHOUSE_URL (default http://localhost:8080). The key is PILOTHOUSE_API_KEY, the one that
\`pilothouse login\` stored, or that of a service of your own on this machine.
\`pilothouse COMMAND --help\` shows the options of a command.
`;
}

/** Returns the help of a command. */
export function describeCommand(name: string, { positionals, summary, options = {} }: Command): string {
  const rows = Object.entries({ ...options, ...commonOptions }).map(([option, { value, help, choices, short }]) => {
    const text = choices ? `${help}: ${choices.join(", ")}` : help;
    return [`${short ? `-${short}, ` : ""}--${option}${value ? ` ${value}` : ""}`, text] as const;
  });
  return `pilothouse ${name} ${positionals}\n\nThe command ${summary}.\n\n${align(rows)}`;
}
