// Compares docs/openapi.digest with the OpenAPI document of the code. With --write, updates the file.
import { readFileSync, writeFileSync } from "node:fs";
import { builtServices, describeServices } from "./described-services.ts";
import { digestOf } from "./openapi-digest.ts";

const path = "docs/openapi.digest";

/** Returns the lines that only one of two texts contains. */
function differences(before: string, after: string): string[] {
  const old = before.split("\n");
  const current = after.split("\n");
  const removed = old.filter((line) => !current.includes(line)).map((line) => `- ${line}`);
  return [...removed, ...current.filter((line) => !old.includes(line)).map((line) => `+ ${line}`)];
}

const digest = digestOf(describeServices(builtServices));
if (process.argv[2] === "--write") {
  writeFileSync(path, digest);
} else {
  const written = readFileSync(path, "utf8");
  if (written !== digest) {
    for (const line of differences(written, digest)) console.error(line);
    console.error(`${path} differs from what the code produces: npm run accept-contract writes it.`);
    process.exitCode = 1;
  }
}
