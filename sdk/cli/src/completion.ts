import type { Command } from "./command.ts";

type Commands = Readonly<Record<string, Command>>;

/** Shells with a completion script. */
export const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** Returns the options of a command as words. */
const optionsOf = ({ options = {} }: Command) => [...Object.keys(options), "json", "help"].map((name) => `--${name}`);

/** Quotes text for a single-quoted string of a shell. */
const quote = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function bash(commands: Commands): string {
  const cases = Object.entries(commands).map(
    ([name, command]) => `    ${name}) words=${quote(optionsOf(command).join(" "))} ;;`,
  );
  return `_pilothouse() {
  local word=\${COMP_WORDS[COMP_CWORD]} words=
  case \${COMP_CWORD}:\${COMP_WORDS[1]} in 1:*) words=${quote(Object.keys(commands).join(" "))} ;; esac
  if [ "$COMP_CWORD" -gt 1 ]; then case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _pilothouse pilothouse
`;
}

function zsh(commands: Commands): string {
  const names = Object.entries(commands).map(([name, { summary }]) => `  ${quote(`${name}:${summary}`)}`);
  const cases = Object.entries(commands).map(
    ([name, command]) => `    ${name}) compadd -- ${optionsOf(command).join(" ")}; _files ;;`,
  );
  return `#compdef pilothouse
_pilothouse() {
  local -a commands=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  case $words[2] in
${cases.join("\n")}
  esac
}
compdef _pilothouse pilothouse
`;
}

function fish(commands: Commands): string {
  const lines = Object.entries(commands).flatMap(([name, { summary, options = {} }]) => [
    `complete -c pilothouse -f -n __fish_use_subcommand -a ${name} -d ${quote(summary)}`,
    ...Object.entries(options).map(
      ([option, { help, choices = [] }]) =>
        `complete -c pilothouse -n '__fish_seen_subcommand_from ${name}' -l ${option} -d ${quote(help)}` +
        (choices.length > 0 ? ` -xa ${quote(choices.join(" "))}` : ""),
    ),
  ]);
  return `${lines.join("\n")}\n`;
}

const scripts: Readonly<Record<Shell, (commands: Commands) => string>> = { bash, zsh, fish };

/** Returns the completion script of a shell, or undefined for an unknown one. */
export function completionScript(shell: string, commands: Commands): string | undefined {
  const known = shells.find((name) => name === shell);
  return known && scripts[known](commands);
}
