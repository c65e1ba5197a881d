import type { EventLog } from "../events/event-log.ts";
import type { Metrics } from "../platform/metrics.ts";
import { createProfileRestore, type RestoreProfile } from "./profile-restore.ts";
import { createProfileSaves, type ProfileSaves, type ProfileSavesParts } from "./profile-saves.ts";
import { createProfileUses, type ProfileUses } from "./profile-uses.ts";

/** What sessions and the fleet need of profiles. */
export interface Profiles {
  readonly uses: ProfileUses;
  readonly saves: ProfileSaves;
  readonly restore: RestoreProfile;
  /** Throws `feature-unavailable` when nothing can be sealed here, and so no profile be kept. */
  assertOffered(): void;
  start(): void;
  stop(): Promise<void>;
}

/** What profiles stand on. */
export type ProfilesParts = Omit<ProfileSavesParts, "uses"> & { readonly events: EventLog; readonly metrics: Metrics };

/** Makes the profiles of a gateway. */
export function createProfiles(parts: ProfilesParts): Profiles {
  const uses = createProfileUses(parts);
  const saves = createProfileSaves({ ...parts, uses });
  return {
    uses,
    saves,
    restore: createProfileRestore(parts),
    assertOffered: () => parts.sealer.assertReady(),
    start: () => saves.start(),
    stop: () => saves.stop(),
  };
}
