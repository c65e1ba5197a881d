import { createRequire } from "node:module";
import type { Server } from "@grpc/grpc-js";
import type HealthCheck from "grpc-health-check";
import type { HealthImplementation } from "grpc-health-check";
import type { ServedService } from "../../src/kernel/registry.ts";
import { addLazily, servicesOf } from "./lazy-services.ts";

export const healthService = "grpc.health.v1.Health";

/** Loads the package, which parses its proto and takes 0.1 s. */
export function loadHealthCheck(): typeof HealthCheck {
  return createRequire(import.meta.url)("grpc-health-check");
}

/** Adds the health service. The server and all services have the same status. `stop` reports them as not serving. */
export function addHealth(server: Server, services: readonly ServedService[]): { stop(): void } {
  const names = ["", ...services.map(({ service }) => service.typeName)];
  let status: "SERVING" | "NOT_SERVING" = "SERVING";
  let loaded: HealthImplementation | undefined;
  const methods = [
    { path: `/${healthService}/Check`, requestStream: false, responseStream: false },
    { path: `/${healthService}/List`, requestStream: false, responseStream: false },
    { path: `/${healthService}/Watch`, requestStream: false, responseStream: true },
  ];
  addLazily(server, methods, () => {
    const { HealthImplementation } = loadHealthCheck();
    loaded = new HealthImplementation(Object.fromEntries(names.map((name) => [name, status])));
    return servicesOf(loaded);
  });
  return {
    stop() {
      status = "NOT_SERVING";
      for (const name of names) loaded?.setStatus(name, status);
    },
  };
}
