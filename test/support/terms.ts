import { publishRevision, termsMailTask } from "../../src/legal/publish.ts";
import type { PeopleGateway } from "./people-gateway.ts";

/** Milliseconds after the e-mail until a revision may come into force. */
const fortnight = 14 * 86_400_000;

/** Publishes a revision of the terms as the operator does, and advances the time until it is in force. */
export async function bringTermsIntoForce(
  { app, now, pass }: Pick<PeopleGateway, "app" | "now" | "pass">,
  { id, url }: { readonly id: string; readonly url: string },
): Promise<void> {
  const revision = { id, url, publishedAt: new Date(now()), effectiveAt: new Date(now() + fortnight) };
  await app.db.transaction((tx) => publishRevision(tx, revision));
  // The gateway runs this job within seconds anyway.
  await termsMailTask(app).run();
  pass(fortnight + 60_000);
}
