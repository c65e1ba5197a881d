import { findUserByEmail, type UserRow } from "../accounts/users.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { Mail } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { createAuthMails } from "./auth-mails.ts";
import type { Client } from "./logins/client.ts";
import type { CountTry } from "./logins/network-throttles.ts";
import { dropVerifications, makeMailToken } from "./mail-tokens.ts";

const max = { strangers: 5, knownNetwork: 5, what: "link requests for this address" };

/** A request for a mailed link; the address may not belong to a user. */
export interface LinkRequest {
  readonly kind: "verify-email" | "magic-link" | "password-reset";
  /** Canonical address. */
  readonly email: string;
}

/**
 * Sends requested links in background jobs. The request is answered before the user is looked up, so that neither
 * response, timing nor load discloses whether the address has a user.
 */
export interface LinkRequests {
  ask(request: LinkRequest): Promise<void>;
  /** Like `ask`, for a client that claims to be the user. Throws `rate-limited`, also for an unknown address. */
  askAsUser(request: LinkRequest & { readonly client: Client }): Promise<void>;
  /** Job kinds that send the links. */
  readonly jobKinds: readonly JobKind<LinkRequest>[];
}

const second = 1_000;

export interface LinkRequestsParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly countTry: CountTry;
  readonly mailer: Mailer;
  readonly jobQueues: JobQueues;
}

export function createLinkRequests(parts: LinkRequestsParts): LinkRequests {
  const { db, clock, countTry, mailer, jobQueues } = parts;
  const mails = createAuthMails(mailer);
  const write: Readonly<Record<LinkRequest["kind"], (user: UserRow, token: string) => Mail>> = {
    "verify-email": mails.verification,
    "magic-link": mails.magicLink,
    "password-reset": mails.passwordReset,
  };

  async function send(tx: Tx, { kind, email }: LinkRequest): Promise<void> {
    const user = await findUserByEmail(tx, email, clock.now());
    if (!user || (kind === "verify-email" && user.email_verified_at)) return;
    if (kind === "verify-email") await dropVerifications(tx, user.id);
    const token = await makeMailToken(tx, kind, { userId: user.id, email }, clock.now());
    await mailer.send(tx, write[kind](user, token));
  }

  const sending = defineJob<LinkRequest>({
    kind: "link",
    width: 4,
    schedule: [second, 5 * second, 30 * second, 120 * second],
    timeout: 10 * second,
    run: ({ data }) => db.transaction((tx) => send(tx, data)),
  });

  const ask = (data: LinkRequest): Promise<void> =>
    db.transaction(async (tx) => jobQueues.enqueue(tx, sending, { queue: "links", data }));

  return {
    ask,
    async askAsUser({ kind, email, client: { network } }) {
      const user = await findUserByEmail(db, email, clock.now());
      await countTry({ kind, email, userId: user?.id, network, ...max });
      await ask({ kind, email });
    },
    jobKinds: [sending],
  };
}
