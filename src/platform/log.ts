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

/** Where the log is written. */
export interface LogDestination {
  write(line: string): void;
  /** Whether a person reads it, who gets short lines in place of JSON. */
  readonly isTTY?: boolean;
}

/** Makes the log. It writes to standard error, so that standard output stays the program's own. */
export function createLog(level: LogLevel, output: LogDestination = process.stderr): Log {
  const destination = output.isTTY ? { write: (line: string) => output.write(shortLine(line)) } : output;
  return pino({ level, base: null, redact: { paths: redactionPaths(), censor: "[redacted]" } }, destination);
}

/** Returns a line of the log as a person reads it: `10:34:21 warn  the worker is lost worker=wrk_1`. */
function shortLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line);
  const words = [new Date(time).toTimeString().slice(0, 8), pino.levels.labels[level]?.padEnd(5), msg];
  for (const [name, value] of Object.entries(fields))
    words.push(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  if (err) words.push(`(${err.message})`);
  // Only a fault of the program needs its stack.
  const stack = err?.stack && level >= faultLevel ? err.stack.split("\n").slice(1) : [];
  return `${[words.join(" "), ...stack].map(withoutControls).join("\n")}\n`;
}

/** The number that pino gives to `error`. */
const faultLevel = 50;

/** Texts of pages and clients are logged, too: they must not control the terminal. */
const withoutControls = (text: string): string => text.replaceAll(/\p{Cc}+/gu, " ");
