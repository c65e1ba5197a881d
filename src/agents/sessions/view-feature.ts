import { AgentViewService } from "../../gen/pilothouse/v1/agent_view_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { type AgentViewParts, createAgentViewService } from "./view-service.ts";

export const agentViews = defineService({
  service: AgentViewService,
  create: (parts: AgentViewParts) => ({ methods: createAgentViewService(parts) }),
});
