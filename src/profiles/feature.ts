import { ProfileService } from "../gen/pilothouse/v1/profile_pb.ts";
import { defineService } from "../kernel/feature.ts";
import type { Profiles } from "./profiles.ts";
import { createProfileService, type ProfileServiceParts } from "./service.ts";

export const profiles = defineService({
  service: ProfileService,
  create: (parts: ProfileServiceParts & { readonly profiles: Profiles }) => ({
    methods: createProfileService(parts),
    jobs: parts.profiles.saves.jobs,
    dueTasks: parts.profiles.saves.dueTasks,
    background: [parts.profiles.saves],
  }),
});
