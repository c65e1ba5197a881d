import { ViewLinkService } from "../../gen/pilothouse/v1/view_link_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { createViewLinkService, type ViewLinkServiceParts } from "./service.ts";
import { sweepViewLinks } from "./store.ts";
import { viewKeyBearers } from "./view-keys.ts";

/** Milliseconds between sweeps of links of ended sessions. */
const sweepEvery = 600_000;

export const viewLinks = defineService({
  service: ViewLinkService,
  bearers: viewKeyBearers,
  create: (parts: ViewLinkServiceParts) => ({
    methods: createViewLinkService(parts),
    jobs: [
      {
        run: () => sweepViewLinks(parts.db),
        every: sweepEvery,
        complaint: "failed to sweep view links of ended sessions",
      },
    ],
  }),
});
