import { AgentTurnService } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { createTurnService, type TurnServiceParts } from "./service.ts";

export const agentTurns = defineService({
  service: AgentTurnService,
  create: (parts: TurnServiceParts) => ({
    methods: createTurnService(parts),
    jobKinds: [parts.turns.jobKind],
    dueTasks: [parts.turns.sweep],
  }),
});
