import { defineService } from "../feature.ts";
import { TeamService } from "../gen/pilothouse/v1/team_pb.ts";
import { createTeamService, type TeamServiceParts } from "./service.ts";
import { teamMigrations } from "./tables.ts";

export const teams = defineService({
  service: TeamService,
  migrations: teamMigrations,
  create: (parts: TeamServiceParts) => ({ methods: createTeamService(parts) }),
});
