import type { ParseArgsOptionsConfig } from "node:util";
import type { Environment } from "../../src/platform/environment.ts";

/** What the command line gives a command, by the names of its options. */
export type Given = Readonly<Record<string, string | undefined>>;

/** A command of the operator. */
export interface AdminCommand {
  /** Its part of the help: its usage, what it does, and its options. */
  readonly help: string;
  /** The names of its options; each takes a value. */
  readonly options: readonly string[];
  /** Does it in an environment, and gives what is to be printed. Throws StartRefused with a sentence when it was given something wrong. */
  run(given: Given, env: Environment): Promise<string>;
}

/** Names separated by commas, in lines that fit beside the options of the help. */
export const nameList = (names: readonly string[]): string =>
  names.join(", ").replaceAll(/(.{40,70}), /g, "$1,\n                          ");

/** The options of a command, as node:util parses them. */
export const parserOptions = ({ options }: AdminCommand): ParseArgsOptionsConfig =>
  Object.fromEntries([...options.map((name) => [name, { type: "string" }]), ["help", { type: "boolean" }]]);
