import type { Call } from "../../kernel/call.ts";
import { fail } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { admitViewer } from "./store.ts";

export type OneViewerParts = Pick<PlatformParts, "db" | "bus" | "clock">;

/**
 * Enforces single-viewer links. The first viewer sets a secret, and viewers with another secret are rejected with
 * `expired-key`. A viewer without a secret cannot return. Other bearers are not restricted.
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
    throw fail(
      "expired-key",
      {},
      { detail: "the key is for a single viewer, and another viewer has used it: request a new link" },
    );
  bus.publish("bearer-changed", id);
}
