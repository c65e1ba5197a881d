import { listAccounts } from "../../src/accounts/store.ts";
import { type NewRevision, publishRevision } from "../../src/legal/publish.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand, Given } from "./command.ts";
import { asOperator } from "./operator.ts";
import { readTime } from "./read-time.ts";

function readRevision({ revision: id = "", url = "", effective }: Given): NewRevision {
  if (!/^[\w.-]{1,64}$/.test(id))
    throw new StartRefused("--revision is required and accepts a name of up to 64 letters, digits, dots, - and _");
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new StartRefused("--url is required and accepts the http or https address of the terms");
  const publishedAt = new Date(systemClock.now());
  return { id, url, publishedAt, effectiveAt: readTime("effective", effective) };
}

export const publishTerms: AdminCommand = {
  help: `publish-terms --revision <name> --url <https://...> --effective <time>

  publishes a revision of terms and privacy, and notifies owners by e-mail; once it is in force, an account
  must accept it before it can do anything else

  --revision <name>       identifier, such as 2030-01-31; clients send it to accept the revision
  --url <address>         address of the text
  --effective <time>      such as 2030-01-31T12:00:00Z, or 15d from now: 14 days or more`,
  options: ["revision", "url", "effective"],
  run(given, env) {
    const revision = readRevision(given);
    const { id, url } = revision;
    return asOperator(env, ({ db, audit }) =>
      db.transaction(async (tx) => {
        const isPublished = await publishRevision(tx, revision).catch((error: unknown) => {
          throw error instanceof RangeError ? new StartRefused(`--effective: ${error.message}`) : error;
        });
        if (!isPublished)
          throw new StartRefused(`there is a revision ${id} already, or one that takes effect at the same time`);
        const effectiveAt = revision.effectiveAt.toISOString();
        const record = { actor: { kind: "operator" }, action: "legal.publish", subject: id } as const;
        for (const account of await listAccounts(tx))
          audit.record(tx, { ...record, accountId: account.id, data: { url, effective_at: effectiveAt } });
        return `The revision ${id} is published, and comes into force at ${effectiveAt}.`;
      }),
    );
  },
};
