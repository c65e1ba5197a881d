#!/usr/bin/env node
import { runProgram } from "./program.ts";

const ending = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => ending.abort());
// A reader such as `head` may close the output early.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

const { env, stdin, stdout, stderr } = process;
process.exitCode = await runProgram(process.argv.slice(2), { env, stdin, stdout, stderr, signal: ending.signal });
// An open standard input would keep the process alive.
stdin.unref?.();
