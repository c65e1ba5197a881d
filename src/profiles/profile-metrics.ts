import { Counter, Gauge, type Registry } from "prom-client";

export type ProfileMetrics = ReturnType<typeof createProfileMetrics>;

export function createProfileMetrics(registry: Registry) {
  const registers = [registry];
  return {
    saves: new Counter({
      name: "pilothouse_profile_saves_total",
      help: "Profiles of ended sessions, by outcome: saved or failed.",
      labelNames: ["outcome"],
      registers,
    }),
    savesWaiting: new Gauge({
      name: "pilothouse_profile_saves_waiting",
      help: "Profiles that wait to be fetched from their workers.",
      registers,
    }),
  };
}
