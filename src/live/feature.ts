import { LiveService } from "../gen/pilothouse/v1/live_pb.ts";
import { defineService } from "../kernel/feature.ts";
import type { Health } from "../status/components.ts";
import type { Status } from "../status/status.ts";
import { createLiveService, type LiveServiceParts } from "./service.ts";

/** Creates a health check of a LiveKit server. Requests the root URL, which needs no authentication. */
function checkUrl(url: string): (signal: AbortSignal) => Promise<Health> {
  const address = url.replace(/^ws/, "http");
  return async (signal) => {
    const { ok, body } = await fetch(address, { signal });
    await body?.cancel();
    return ok ? "operational" : "degraded";
  };
}

export const live = defineService({
  service: LiveService,
  create(parts: LiveServiceParts & { readonly status: Status }) {
    const { liveKit } = parts.config;
    // While LiveKit is down, viewers fall back to frames.
    if (liveKit)
      parts.status.sources.watch({ component: "live_view", failing: "degraded", check: checkUrl(liveKit.url) });
    return { methods: createLiveService(parts) };
  },
});
