import type { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";
import { type LogEntry, Pilothouse } from "../../typescript/src/index.ts";
import { type Command, createValues, type Invocation } from "./command.ts";
import { commands } from "./commands.ts";
import { type Environment, findCredentials, findUrl } from "./credentials.ts";
import { describeError, exitCodeOf, exitCodes } from "./exit-codes.ts";
import { commonOptions, describeCommand, describeProgram } from "./help.ts";
import { createOutput, type Output } from "./output.ts";
import { UsageError } from "./usage-error.ts";

/** Surroundings of a run, such as those of the process. */
export interface Surroundings {
  readonly env: Environment;
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Runs a command line, and returns its exit code. */
export async function runProgram(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { env, stdout, stderr, signal } = surroundings;
  const [name = "--help", ...rest] = args;
  if (name === "--help" || name === "-h" || name === "help") {
    stdout.write(describeProgram(commands));
    return 0;
  }
  // Errors before the options are parsed are for people or programs, as the output is.
  let isJson = stdout.isTTY !== true;
  try {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!command)
      throw new UsageError(`expected a command (${Object.keys(commands).join(", ")}), got ${name}; see --help`);
    isJson ||= rest.includes("--json");
    await runCommand(name, command, rest, surroundings);
    return 0;
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted;
    const { problem, line } = describeError(error, safeUrl(env));
    stderr.write(isJson ? `${JSON.stringify(problem)}\n` : `pilothouse: ${line}\n`);
    return exitCodeOf(error);
  }
}

/** Returns the address of the service for a message, although the stored key may be unreadable. */
function safeUrl(env: Environment): string {
  try {
    return findUrl(env);
  } catch {
    return "the service";
  }
}

async function runCommand(name: string, command: Command, args: readonly string[], surroundings: Surroundings) {
  const { stdout, env } = surroundings;
  const options = { ...command.options, ...commonOptions };
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  if (values.help) return void stdout.write(describeCommand(name, command));
  const [least, most] = command.count;
  if (positionals.length < least || positionals.length > most)
    throw new UsageError(`expected pilothouse ${name} ${command.positionals}, got ${positionals.length} arguments`);
  const output = createOutput(surroundings, stdout.isTTY !== true || values.json === true);
  let client: Pilothouse | undefined;
  const invocation: Invocation = {
    ...surroundings,
    positionals,
    values: createValues(values),
    output,
    client: () => (client ??= createClient(env, output)),
  };
  await command.run(invocation);
}

/** Creates a client that reports its retries. */
function createClient(env: Environment, output: Output): Pilothouse {
  const { url, key } = findCredentials(env);
  const log = ({ method, path, error, retryInMs }: LogEntry) => {
    if (error && retryInMs !== undefined)
      output.progress(`${method} ${path}: ${error.message}; trying again in ${Math.round(retryInMs)} ms`);
  };
  return new Pilothouse({ apiKey: key, baseUrl: url, log });
}
