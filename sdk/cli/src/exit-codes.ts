import {
  AgentRunError,
  PilothouseConnectionError,
  PilothouseResponseError,
  PilothouseTimeoutError,
} from "../../typescript/src/index.ts";
import { UsageError } from "./usage-error.ts";

/** Exit codes by class of error. They are a contract with scripts; the README lists them. */
export const exitCodes = {
  failure: 1,
  usage: 2,
  notAllowed: 3,
  notFound: 4,
  conflict: 5,
  limit: 6,
  unavailable: 7,
  interrupted: 130,
} as const;

/** Exit codes by HTTP status of the service. Other statuses result in `failure`. */
const codesByStatus: Readonly<Record<number, number>> = {
  400: exitCodes.usage,
  401: exitCodes.notAllowed,
  402: exitCodes.limit,
  403: exitCodes.notAllowed,
  404: exitCodes.notFound,
  409: exitCodes.conflict,
  410: exitCodes.notFound,
  429: exitCodes.limit,
  503: exitCodes.unavailable,
  504: exitCodes.unavailable,
};

/** Returns the exit code of an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof PilothouseResponseError) return codesByStatus[error.status] ?? exitCodes.failure;
  if (error instanceof PilothouseConnectionError || error instanceof PilothouseTimeoutError)
    return exitCodes.unavailable;
  return exitCodes.failure;
}

/** Returns what to print about an error: an object for programs, and a line for people. */
export function describeError(error: unknown, url: string): { readonly problem: object; readonly line: string } {
  if (error instanceof PilothouseResponseError) {
    const { slug, status, requestId, message } = error;
    const line = `${url} answered ${message}${hintOf(error)}`;
    return { problem: { error: slug, status, detail: error.detail, request_id: requestId }, line };
  }
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
  if (error instanceof PilothouseConnectionError)
    return { problem: { error: "connection", detail: line }, line: `${url} cannot be reached (${line}): ${startHint}` };
  const kind = error instanceof AgentRunError ? "agent-run" : "failure";
  return { problem: { error: kind, detail: line }, line };
}

const startHint = "start the service, or set PILOTHOUSE_URL";

function hintOf({ slug, problem }: PilothouseResponseError): string {
  // Another server has answered, or the path of the URL is wrong.
  if (problem.type === "about:blank" || problem.detail?.startsWith("no endpoint has this path"))
    return ". Check PILOTHOUSE_URL";
  if (slug !== "byok-llm-required") return "";
  return ". Set LLM_KEY to a key of your own for this run (and LLM_MODEL, such as anthropic/claude-haiku-4-5)";
}
