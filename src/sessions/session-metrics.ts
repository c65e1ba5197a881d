import { Counter, Histogram, type Registry } from "prom-client";

export type SessionMetrics = ReturnType<typeof createSessionMetrics>;

export function createSessionMetrics(registry: Registry) {
  const registers = [registry];
  return {
    ended: new Counter({
      name: "pilothouse_sessions_ended_total",
      help: "Sessions that have ended, by ended_reason.",
      labelNames: ["reason"],
      registers,
    }),
    workersUnreachable: new Counter({
      name: "pilothouse_session_launch_unreachable_total",
      help: "Launches on a worker that could not be reached, or was lost during the launch. Another worker is then tried.",
      registers,
    }),
    launch: new Histogram({
      name: "pilothouse_session_launch_seconds",
      help: "Seconds from the start of a create request until its session is live, without waiting at the account's limit.",
      buckets: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
      registers,
    }),
  };
}
