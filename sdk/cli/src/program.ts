import type { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";
import { type LogEntry, Pilothouse } from "../../typescript/src/index.ts";
import packageJson from "../package.json" with { type: "json" };
import { type Command, createValues, type Invocation, type Option } from "./command.ts";
import { commands } from "./commands.ts";
import { type Environment, findCredentials, findUrl } from "./credentials.ts";
import { describeError, exitCodeOf, exitCodes } from "./exit-codes.ts";
import { commonOptions, describeCommand, describeProgram } from "./help.ts";
import { createOutput, type Output, oneLine } from "./output.ts";
import { UsageError } from "./usage-error.ts";

/** Environment, streams and signal of a run, such as those of the process. */
export interface ProgramContext {
  readonly env: Environment;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Runs a command line, and returns its exit code. */
export async function runProgram(args: readonly string[], context: ProgramContext): Promise<number> {
  const { env, stdout, stderr, signal } = context;
  const [first = "--help", ...others] = args;
  // `help COMMAND` is `COMMAND --help`.
  const [name, ...rest] = first === "help" && others[0] !== undefined ? [others[0], "--help"] : [first, ...others];
  if (name === "--help" || name === "-h" || name === "help") {
    stdout.write(describeProgram(commands));
    return 0;
  }
  if (name === "--version" || name === "-v") {
    stdout.write(`${packageJson.version}\n`);
    return 0;
  }
  // Until the options are parsed, only the kind of the output decides whether errors are JSON.
  let isJson = stdout.isTTY !== true;
  try {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!command) throw new UsageError(describeUnknown(name));
    isJson ||= rest.includes("--json");
    await runCommand(name, command, rest, context);
    return 0;
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted;
    const { problem, line } = describeError(error, safeUrl(env));
    stderr.write(isJson ? `${JSON.stringify(problem)}\n` : `pilothouse: ${line}\n`);
    return exitCodeOf(error);
  }
}

/** Returns the message for an unknown command. */
function describeUnknown(name: string): string {
  const names = Object.keys(commands);
  const meant = names.find((known) => known.startsWith(name) || name.startsWith(known));
  return `expected a command (${names.join(", ")}), got ${name}; ${meant ? `did you mean ${meant}?` : "see --help"}`;
}

/** Returns the address of the service for a message, although the stored key may be unreadable. */
function safeUrl(env: Environment): string {
  try {
    return findUrl(env);
  } catch {
    return "the service";
  }
}

async function runCommand(name: string, command: Command, args: readonly string[], context: ProgramContext) {
  const { stdout, env } = context;
  const options = { ...command.options, ...commonOptions };
  const { values, positionals } = parse(name, args, options);
  if (values.help) return void stdout.write(describeCommand(name, command));
  const [min, max] = command.count;
  if (positionals.length < min || positionals.length > max)
    throw new UsageError(`expected pilothouse ${name} ${command.positionals}, got ${positionals.length} arguments`);
  const output = createOutput(context, stdout.isTTY !== true || values.json === true);
  let client: Pilothouse | undefined;
  const invocation: Invocation = {
    ...context,
    positionals,
    values: createValues(values),
    output,
    client: () => (client ??= createClient(env, output)),
  };
  await command.run(invocation);
}

/** Parses the arguments of a command. Throws UsageError if they do not match its options. */
function parse(name: string, args: readonly string[], options: Readonly<Record<string, Option>>) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    if (!(error instanceof TypeError && "code" in error)) throw error;
    // The following sentences are about arguments that begin with a dash.
    const [sentence] = error.message.split(/\. |\n/);
    throw new UsageError(`${sentence}; see pilothouse ${name} --help`, { cause: error });
  }
}

/** Creates a client that reports its retries. */
function createClient(env: Environment, output: Output): Pilothouse {
  const { url, key } = findCredentials(env);
  const log = ({ method, path, error, retryInMs }: LogEntry) => {
    if (error && retryInMs !== undefined)
      output.progress(`${method} ${path}: ${oneLine(error.message)}; trying again in ${Math.round(retryInMs)} ms`);
  };
  return new Pilothouse({ apiKey: key, baseUrl: url, log });
}
