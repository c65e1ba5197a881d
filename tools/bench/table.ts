import type { Row } from "./bench.ts";

export function printTable(rows: readonly Row[]): void {
  const heading = { what: "what", ours: "pilothouse", bare: "bare", verdict: "" };
  const lines = [heading, ...rows];
  const width = (key: keyof Row): number => Math.max(...lines.map((line) => line[key].length));
  const widths = { what: width("what"), ours: width("ours"), bare: width("bare") };
  for (const { what, ours, bare, verdict } of lines) {
    const cells = [what.padEnd(widths.what), ours.padEnd(widths.ours), bare.padEnd(widths.bare), verdict];
    process.stdout.write(`  ${cells.join("   ").trimEnd()}\n`);
  }
}
