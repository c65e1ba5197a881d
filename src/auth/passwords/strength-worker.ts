import { parentPort } from "node:worker_threads";
import { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { adjacencyGraphs, dictionary } from "@zxcvbn-ts/language-common";
import type { StrengthAnswer, StrengthQuestion } from "./strength.ts";

const zxcvbn = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });

parentPort?.on("message", ({ password, known }: StrengthQuestion) => {
  const { score, feedback } = zxcvbn.check(password, [...known]);
  parentPort?.postMessage({ score, warning: feedback.warning ?? "" } satisfies StrengthAnswer);
});
