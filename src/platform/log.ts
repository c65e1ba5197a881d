import { type Logger, pino } from "pino";

/** Log of the service: one JSON object per line, or short lines on a terminal. */
export type Log = Logger;

/**
 * Log levels. `info` reports changes (started, stopped, a worker lost), and single requests only with ACCESS_LOG=on.
 */
export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

export type LogLevel = (typeof logLevels)[number];

/** Members redacted at the top level and up to two levels below. */
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
  // Text typed into pages.
  "text",
];

function redactionPaths(): string[] {
  return secretMembers.flatMap((member) => {
    const below = member.startsWith("[") ? member : `.${member}`;
    return [member, `*${below}`, `*.*${below}`];
  });
}

export interface LogDestination {
  write(line: string): void;
  /** Whether the output is a terminal, which gets short lines instead of JSON. */
  readonly isTTY?: boolean;
}

/** Creates the log, which writes to standard error by default. */
export function createLog(level: LogLevel, output: LogDestination = process.stderr): Log {
  const destination = output.isTTY ? { write: (line: string) => output.write(shortLine(line)) } : output;
  return pino({ level, base: null, redact: { paths: redactionPaths(), censor: "[redacted]" } }, destination);
}

/** Formats a log line for a terminal: `10:34:21 warn  the worker is lost worker_id=wrk_1`. */
function shortLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line);
  const words = [new Date(time).toTimeString().slice(0, 8), pino.levels.labels[level]?.padEnd(5), msg];
  for (const [name, value] of Object.entries(fields))
    words.push(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  if (err) words.push(`(${err.message})`);
  // Stacks are shown from level `error` on.
  const stack = err?.stack && level >= faultLevel ? err.stack.split("\n").slice(1) : [];
  return `${[words.join(" "), ...stack].map(withoutControls).join("\n")}\n`;
}

/** Level number of `error` in pino. */
const faultLevel = 50;

/** Replaces control characters with spaces, because logs contain text from pages and clients. */
const withoutControls = (text: string): string => text.replaceAll(/\p{Cc}+/gu, " ");
