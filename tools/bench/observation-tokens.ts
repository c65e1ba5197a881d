import { launchComparison, observedPages } from "../../test/support/aria-comparison.ts";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";

const bar = 0.7;

/** Tokens of our snapshots and of Playwright's, and the actionable elements that ours leave out. */
export const observationTokens: Bench = {
  name: "observation-tokens",
  title:
    "tokens (o200k_base) of a snapshot, against ariaSnapshot({ mode: 'ai' }) of the same page and of the same view",
  async run(): Promise<Row[]> {
    await using comparison = await launchComparison();
    const rows: Row[] = [];
    for (const name of observedPages) {
      for (const isWhole of [false, true]) {
        const { tokens, actionable, lost } = await comparison.compare(name, isWhole);
        rows.push({
          what: `${name}, ${isWhole ? "whole page" : "view"}`,
          ours: String(tokens.ours),
          bare: String(tokens.theirs),
          verdict: `${ratioVerdict(tokens.ours / tokens.theirs, bar)}; ${lost.length} of ${actionable} actionable lost`,
        });
      }
    }
    return rows;
  },
};
