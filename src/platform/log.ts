import { type Logger, pino } from "pino";

/** The service's log: one JSON object per line. */
export type Log = Logger;

/** How much is logged; `info` says what changed (started, stopped, a worker lost), never one line per request. */
export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

/** One of `logLevels`. */
export type LogLevel = (typeof logLevels)[number];

/** Names of members that never reach the log, at the top level and one and two levels below it. */
const secretMembers = [
  "authorization",
  "cookie",
  '["set-cookie"]',
  '["x-byok-llm-api-key"]',
  '["proxy-authorization"]',
  '["sec-websocket-protocol"]',
  '["worker-secret"]',
  "password",
  "secret",
  "workerSecret",
  "workerToken",
  // What is typed into pages.
  "text",
];

function redactionPaths(): string[] {
  return secretMembers.flatMap((member) => {
    const below = member.startsWith("[") ? member : `.${member}`;
    return [member, `*${below}`, `*.*${below}`];
  });
}

/** Makes the log. It writes to standard error, so that standard output stays the program's own. */
export function createLog(level: LogLevel, destination: { write(line: string): void } = process.stderr): Log {
  return pino({ level, base: null, redact: { paths: redactionPaths(), censor: "[redacted]" } }, destination);
}
