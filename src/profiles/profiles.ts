import type { Registry } from "prom-client";
import { createProfileMetrics } from "./profile-metrics.ts";
import { createProfileRestore, type RestoreProfile } from "./profile-restore.ts";
import { createProfileSaves, type ProfileSaves, type ProfileSavesParts } from "./profile-saves.ts";
import { createProfileUses, type ProfileUses } from "./profile-uses.ts";

/** Operations with which sessions use profiles. */
export interface Profiles {
  readonly uses: ProfileUses;
  readonly saves: ProfileSaves;
  readonly restore: RestoreProfile;
}

type ProfilesParts = Omit<ProfileSavesParts, "uses" | "metrics"> & {
  readonly metrics: Registry;
};

export function createProfiles(parts: ProfilesParts): Profiles {
  const metrics = createProfileMetrics(parts.metrics);
  const uses = createProfileUses({ ...parts, metrics });
  const saves = createProfileSaves({ ...parts, metrics, uses });
  return {
    uses,
    saves,
    restore: createProfileRestore(parts),
  };
}
