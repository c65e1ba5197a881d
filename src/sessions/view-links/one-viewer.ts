import type { Call } from "../../kernel/call.ts";
import type { Bus } from "../../platform/bus.ts";
import type { Clock } from "../../platform/clock.ts";
import { fail } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { admitViewer } from "./store.ts";

export interface OneViewerParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
}

/**
 * Enforces single-viewer links: the first viewer sets a secret, and only that secret is admitted afterwards. A viewer
 * without a secret cannot return. Other bearers are admitted unconditionally. Throws `expired-key`.
 */
export async function admitPerson(
  { db, bus, clock }: OneViewerParts,
  { principal: { person } }: Pick<Call, "principal">,
  viewerKey = randomText(40),
): Promise<void> {
  if (!person) return;
  const { linkId: id } = person;
  const isAdmitted = await admitViewer(db, { id, viewerHash: hashSecret(viewerKey), now: new Date(clock.now()) });
  if (!isAdmitted)
    throw fail("expired-key", {}, { detail: "the key is for a single viewer, and another viewer has used it" });
  bus.publish("bearer-changed", id);
}
