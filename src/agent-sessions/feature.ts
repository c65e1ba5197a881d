import { defineService } from "../feature.ts";
import { AgentSessionService } from "../gen/pilothouse/v1/agent_session_pb.ts";
import { type AgentSessionServiceParts, createAgentSessionService } from "./service.ts";
import { agentSessionMigrations } from "./tables.ts";

export const agentSessions = defineService({
  service: AgentSessionService,
  migrations: agentSessionMigrations,
  create: (parts: AgentSessionServiceParts) => ({ methods: createAgentSessionService(parts) }),
});
