import { defineService } from "../feature.ts";
import { AgentViewService } from "../gen/pilothouse/v1/agent_view_pb.ts";
import { type AgentViewParts, createAgentViewService } from "./view-service.ts";

export const agentViews = defineService({
  service: AgentViewService,
  create: (parts: AgentViewParts) => ({ methods: createAgentViewService(parts) }),
});
