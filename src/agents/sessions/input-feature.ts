import { AgentInputService } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { type AgentInputParts, createAgentInputService } from "./input-service.ts";

export const agentInput = defineService({
  service: AgentInputService,
  create: (parts: AgentInputParts) => ({ methods: createAgentInputService(parts) }),
});
