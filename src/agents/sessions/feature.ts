import { AgentInputService } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import { AgentSessionService } from "../../gen/pilothouse/v1/agent_session_pb.ts";
import { AgentViewService } from "../../gen/pilothouse/v1/agent_view_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { type AgentInputParts, createAgentInputService } from "./input-service.ts";
import { type AgentSessionServiceParts, createAgentSessionService } from "./service.ts";
import { clearEndedVariables } from "./store.ts";
import { type AgentViewParts, createAgentViewService } from "./view-service.ts";

export const agentSessions = defineService({
  service: AgentSessionService,
  create: (parts: AgentSessionServiceParts) => ({
    methods: createAgentSessionService(parts),
    jobs: [
      {
        run: () => clearEndedVariables(parts.db),
        every: 10_000,
        failureMessage: "failed to delete variables of ended agent sessions",
      },
    ],
  }),
});

export const agentInput = defineService({
  service: AgentInputService,
  create: (parts: AgentInputParts) => ({ methods: createAgentInputService(parts) }),
});

export const agentViews = defineService({
  service: AgentViewService,
  create: (parts: AgentViewParts) => ({ methods: createAgentViewService(parts) }),
});
