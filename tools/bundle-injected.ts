// Bundles the code that workers run in pages. Each workers/injected/X-script.ts becomes X-script.ts in the given directory: a
// constant with an expression that evaluates to the exports of the script.
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "vite";

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("expected the directory to write to");

/** Bundles a script into an expression. Its variables stay in the expression's own scope. */
async function bundle(entry: string): Promise<string> {
  const built = await build({
    configFile: false,
    publicDir: false,
    logLevel: "warn",
    build: {
      lib: { entry, formats: ["iife"], name: "script" },
      write: false,
      target: "esnext",
      rolldownOptions: { output: { generatedCode: { symbols: false }, comments: false } },
    },
  });
  const [result] = [built].flat();
  if (!result || !("output" in result)) throw new Error(`expected one bundle of ${entry}`);
  return `(() => { ${result.output[0].code.trim()} return script; })()`;
}

mkdirSync(directory, { recursive: true });
for (const entry of globSync("workers/injected/*-script.ts")) {
  const name = basename(entry);
  const constant = basename(entry, ".ts").replace(/-(.)/, (_, letter: string) => letter.toUpperCase());
  writeFileSync(join(directory, name), `export const ${constant}: string = ${JSON.stringify(await bundle(entry))};\n`);
}
