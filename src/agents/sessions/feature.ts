import { AgentSessionService } from "../../gen/pilothouse/v1/agent_session_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { type AgentSessionServiceParts, createAgentSessionService } from "./service.ts";
import { forgetVariables } from "./store.ts";

export const agentSessions = defineService({
  service: AgentSessionService,
  create: (parts: AgentSessionServiceParts) => ({
    methods: createAgentSessionService(parts),
    jobs: [
      {
        run: () => forgetVariables(parts.db),
        every: 10_000,
        complaint: "failed to delete secrets of ended agent sessions",
      },
    ],
  }),
});
