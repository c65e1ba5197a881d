import { hostname } from "node:os";
import { Gauge, type Registry } from "prom-client";
import packageJson from "../../package.json" with { type: "json" };

/** Version of this release, such as `0.2.0`. */
export const releaseVersion: string = packageJson.version;

/** Returns the log fields that identify a process when it starts and ends. */
export const processIdentity = (role: "supervisor" | "control" | "gateway" | "worker") => ({
  role,
  release: releaseVersion,
  host: hostname(),
});

/** Registers `pilothouse_build_info`, which has the versions of the process as labels. */
export function addBuildInfo(registry: Registry): void {
  new Gauge({
    name: "pilothouse_build_info",
    help: "Always 1. The labels are the versions of the process.",
    labelNames: ["release", "node"],
    registers: [registry],
  }).set({ release: releaseVersion, node: process.version }, 1);
}
