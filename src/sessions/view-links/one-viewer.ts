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
 * Lets in who comes by a link for one person: the first who comes, and then whoever has the secret that the first one has
 * made up. Without a secret nobody comes again. Lets in all who come by anything else.
 */
export async function admitPerson(
  { db, bus, clock }: OneViewerParts,
  { principal: { person } }: Pick<Call, "principal">,
  viewerKey = randomText(40),
): Promise<void> {
  if (!person) return;
  const { linkId: id } = person;
  const isAdmitted = await admitViewer(db, { id, viewerHash: hashSecret(viewerKey), now: new Date(clock.now()) });
  if (!isAdmitted) throw fail("expired-key", {}, { detail: "the key is for one viewer, and another has come by it" });
  bus.publish("bearer-changed", id);
}
