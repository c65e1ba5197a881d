import type { Readable, Writable } from "node:stream";
import type { ParseArgsOptionDescriptor } from "node:util";
import type { Pilothouse } from "../../typescript/src/index.ts";
import type { Environment } from "./credentials.ts";
import type { Output } from "./output.ts";
import { UsageError } from "./usage-error.ts";

/** Option of a command, as `parseArgs` takes it, with its line of the help. */
export interface Option extends ParseArgsOptionDescriptor {
  readonly help: string;
  /** Name of the value in the help. */
  readonly value?: string;
  /** Values that completion offers. */
  readonly choices?: readonly string[];
}

/** Parsed command line of one run, with the streams and settings of the run. */
export interface Invocation {
  readonly positionals: readonly string[];
  readonly values: OptionValues;
  readonly output: Output;
  readonly env: Environment;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  /** Returns the client of the service. Throws UsageError without a key. */
  client(): Pilothouse;
}

/** Values of the options of one run. */
export interface OptionValues {
  text(name: string): string | undefined;
  texts(name: string): readonly string[];
  isSet(name: string): boolean;
  /** Returns the value of an option as a whole number. Throws UsageError for another text. */
  number(name: string): number | undefined;
}

/** Subcommand of `pilothouse`. */
export interface Command {
  readonly summary: string;
  /** Positional arguments in the help, such as `URL [FILE]`. */
  readonly positionals: string;
  /** Smallest and largest number of positional arguments. */
  readonly count: readonly [min: number, max: number];
  readonly options?: Readonly<Record<string, Option>>;
  run(invocation: Invocation): Promise<void>;
}

type Parsed = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Returns the values of options that `parseArgs` has parsed. */
export function createValues(parsed: Parsed): OptionValues {
  const texts = (name: string) => [parsed[name] ?? []].flat().filter((value) => typeof value === "string");
  const text = (name: string) => texts(name)[0];
  return {
    text,
    texts,
    isSet: (name) => parsed[name] === true,
    number(name) {
      const value = text(name);
      if (value !== undefined && !/^\d{1,9}$/.test(value))
        throw new UsageError(`expected a whole number for --${name}, got ${value}`);
      return value === undefined ? undefined : Number(value);
    },
  };
}
