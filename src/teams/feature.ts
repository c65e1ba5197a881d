import { TeamService } from "../gen/pilothouse/v1/team_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createTeamService, type TeamServiceParts } from "./service.ts";

export const teams = defineService({
  service: TeamService,
  create: (parts: TeamServiceParts) => ({ methods: createTeamService(parts) }),
});
