import type { ParseArgsOptionsConfig } from "node:util";
import type { Environment } from "../../src/platform/environment.ts";

/** Values of a command's options, by name. */
export type Given = Readonly<Record<string, string | undefined>>;

/** A command of the operator. */
export interface AdminCommand {
  /** Help text of the command: usage, purpose and options. */
  readonly help: string;
  /** Names of the options; each takes a value. */
  readonly options: readonly string[];
  /** Name of the value that the command requires before or after its options. */
  readonly argument?: string;
  /** Runs the command and returns its output. Throws StartRefused for invalid options. */
  run(given: Given, env: Environment): Promise<string>;
}

/** Joins names by commas, in lines that fit the option column of the help. */
export const nameList = (names: readonly string[]): string =>
  names.join(", ").replaceAll(/(.{40,70}), /g, "$1,\n                          ");

/** Returns the options of a command for `parseArgs`. */
export const parserOptions = ({ options }: AdminCommand): ParseArgsOptionsConfig =>
  Object.fromEntries([...options.map((name) => [name, { type: "string" }]), ["help", { type: "boolean" }]]);
