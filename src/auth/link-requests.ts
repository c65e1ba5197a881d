import { findUserByEmail } from "../accounts/users.ts";
import type { Client } from "../logins/client.ts";
import type { CountTry } from "../logins/network-brakes.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Clock } from "../platform/clock.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import { makeMailToken } from "./mail-tokens.ts";
import { createAuthMails } from "./mails.ts";

const most = { strangers: 5, knownNetwork: 5, what: "links were asked for this address" };

/** A link that somebody asks for. */
export interface LinkRequest {
  readonly kind: "magic-link" | "password-reset";
  /** The canonical address. */
  readonly email: string;
  readonly client: Client;
}

/**
 * Sends the links that are asked for. The request is answered before anybody knows whether the address has a user, so that
 * neither the answer nor the time that it takes tells. Throws `rate-limited` alike for both.
 */
export interface LinkRequests extends Part {
  take(request: LinkRequest): Promise<void>;
}

/** Makes what sends the links of a gateway. */
export function createLinkRequests(parts: {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly countTry: CountTry;
  readonly mailer: Mailer;
}): LinkRequests {
  const { db, clock, log, countTry, mailer } = parts;
  const mails = createAuthMails(mailer);
  const running = new Set<Promise<void>>();

  async function send({ kind, email }: LinkRequest): Promise<void> {
    const user = await findUserByEmail(db, email, clock.now());
    if (!user) return;
    await db.transaction(async (tx) => {
      const token = await makeMailToken(tx, kind, { userId: user.id, email }, clock.now());
      await mailer.send(tx, kind === "magic-link" ? mails.magicLink(user, token) : mails.passwordReset(user, token));
    });
  }

  return {
    async take(request) {
      const { kind, email, client } = request;
      const user = await findUserByEmail(db, email, clock.now());
      await countTry({ kind, email, userId: user?.id, network: client.network, ...most });
      const sending = send(request)
        .catch((error: unknown) => log.warn({ err: error }, "a link that was asked for cannot be sent"))
        .finally(() => running.delete(sending));
      running.add(sending);
    },
    async stop() {
      await Promise.all(running);
    },
  };
}
