import { ViewLinkService } from "../../gen/pilothouse/v1/view_link_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import { createViewLinkService, type ViewLinkServiceParts } from "./service.ts";
import { sweepViewLinks } from "./store.ts";
import { viewKeyBearers } from "./view-keys.ts";

export const viewLinks = defineService({
  service: ViewLinkService,
  bearers: viewKeyBearers,
  create: (parts: ViewLinkServiceParts) => ({
    methods: createViewLinkService(parts),
    jobs: [sweepTask(() => sweepViewLinks(parts.db), "failed to sweep view links of ended sessions")],
  }),
});
