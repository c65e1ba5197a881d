import { Counter, type Registry } from "prom-client";

/** Metrics of CDP client connections. `pilothouse_open_streams` counts open connections. */
export type RelayMetrics = ReturnType<typeof createRelayMetrics>;

/** Creates the metrics of relays. */
export function createRelayMetrics(registry: Registry) {
  const registers = [registry];
  return {
    messages: new Counter({
      name: "pilothouse_cdp_messages_total",
      help: "Messages of CDP clients (in) and for them (out).",
      labelNames: ["direction"],
      registers,
    }),
    held: new Counter({
      name: "pilothouse_cdp_held_seconds_total",
      help: "Seconds for which CDP clients were held because they sent too much at once.",
      registers,
    }),
  };
}
