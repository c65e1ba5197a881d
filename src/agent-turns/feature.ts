import { defineService } from "../feature.ts";
import { AgentTurnService } from "../gen/pilothouse/v1/agent_turn_pb.ts";
import { createTurnService, type TurnServiceParts } from "./service.ts";
import { turnMigrations } from "./tables.ts";
import { createTurns, type TurnsParts } from "./turns.ts";

export const agentTurns = defineService({
  service: AgentTurnService,
  migrations: turnMigrations,
  create: (parts: Omit<TurnServiceParts, "turns"> & TurnsParts) => {
    const turns = createTurns(parts);
    return { methods: createTurnService({ ...parts, turns }), works: [turns.work], jobs: turns.jobs };
  },
});
