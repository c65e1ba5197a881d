import { findUserByEmail, type UserRow } from "../accounts/users.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { Mail } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { createAuthMails } from "./auth-mails.ts";
import type { Client } from "./logins/client.ts";
import type { CountAttempt } from "./logins/network-throttles.ts";
import { dropVerifications, makeMailToken } from "./mail-tokens.ts";

const max = { shared: 5, knownNetwork: 5, what: "link requests for this address" };

/** A request for a link by e-mail. The address does not necessarily belong to a user. */
export interface LinkRequest {
  readonly kind: "verify-email" | "magic-link" | "password-reset";
  /** Canonical address. */
  readonly email: string;
}

/**
 * Sends requested links in background jobs, so that neither response nor timing discloses whether the address has a
 * user.
 */
export interface LinkRequests {
  request(request: LinkRequest): Promise<void>;
  /**
   * Like `request`, for a client that claims to be the user. Throws `rate-limited` after too many requests for the
   * address, whether or not the address has a user.
   */
  requestAsUser(request: LinkRequest & { readonly client: Client }): Promise<void>;
  /** Job kinds that send the links. */
  readonly jobKinds: readonly JobKind<LinkRequest>[];
}

const second = 1_000;

export interface LinkRequestsParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly countAttempt: CountAttempt;
  readonly mailer: Mailer;
  readonly jobQueues: JobQueues;
}

export function createLinkRequests(parts: LinkRequestsParts): LinkRequests {
  const { db, clock, countAttempt, mailer, jobQueues } = parts;
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

  const request = (data: LinkRequest): Promise<void> =>
    db.transaction(async (tx) => jobQueues.enqueue(tx, sending, { queue: "links", data }));

  return {
    request,
    async requestAsUser({ kind, email, client: { network } }) {
      const user = await findUserByEmail(db, email, clock.now());
      await countAttempt({ kind, email, userId: user?.id, network, ...max });
      await request({ kind, email });
    },
    jobKinds: [sending],
  };
}
