import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";

const root = join(import.meta.dirname, "../..");

/** The halves of the package, with the code that each puts around a program written for the asynchronous one. */
export const halves = ["asynchronous", "synchronous"] as const;
export type Half = (typeof halves)[number];

const prelude = `import json, os, sys
from pathlib import Path
import pilothouse
from pilothouse import *
def show(value):
    print(json.dumps(value))
`;

/** An empty virtual environment into which the wheel is installed. */
export interface PythonPackage extends Workshop {
  /** Runs the statements of a program with a `client` of a service. Returns the values that it shows. */
  runProgram(half: Half, url: string, program: string, options?: string, key?: string): Promise<unknown[]>;
}

/** Builds the wheel and installs it, with other packages, into an empty virtual environment. */
export async function installWheel(...packages: readonly string[]): Promise<PythonPackage> {
  const run = promisify(execFile);
  await run("sh", ["tools/generate-python-sdk.sh"], { cwd: root });
  const workshop = await openWorkshop("venv/bin");
  await workshop.run("python3", "-m", "venv", "venv");
  const pip = ["--quiet", "--disable-pip-version-check"];
  await workshop.run("pip", "wheel", ...pip, "--no-deps", "--wheel-dir", "dist", join(root, "sdk/python"));
  await workshop.run("sh", "-c", `pip install ${pip.join(" ")} dist/*.whl ${packages.join(" ")}`);
  return { ...workshop, runProgram: (...program) => runProgram(workshop, ...program) };
}

/** Turns an asynchronous program into its synchronous twin. */
const toSync = (program: string) => program.replaceAll(/\b(?:await|async) /g, "").replaceAll("Async", "");

async function runProgram(
  workshop: Workshop,
  half: Half,
  url: string,
  program: string,
  options = "",
  key = "phk_secret",
): Promise<unknown[]> {
  const given = `api_key="${key}", base_url=${JSON.stringify(url)}${options && `, ${options}`}`;
  const lines = [
    `async with AsyncPilothouse(${given}) as client:`,
    ...program
      .trim()
      .split("\n")
      .map((line) => `    ${line}`),
  ];
  const body = lines.map((line) => `    ${line}`).join("\n");
  const whole = `async def main():\n${body}\n`;
  const text = half === "asynchronous" ? `${whole}import asyncio\nasyncio.run(main())\n` : `${toSync(whole)}main()\n`;
  const file = `program-${half}.py`;
  await writeFile(join(workshop.directory, file), prelude + text);
  const { stdout } = await workshop.run("python", file);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
