import { sql } from "kysely";
import { canonicalEmail } from "../accounts/users.ts";
import type { Throttles } from "../identity/throttle.ts";
import type { Mailer } from "../mail/mailer.ts";
import { networkOf } from "../platform/client-network.ts";
import { type Failure, fail } from "../platform/errors.ts";
import { randomText } from "../platform/ids.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { hashSecret } from "../platform/secrets/secrets.ts";
import { isKeyLost, type Sealer } from "../platform/secrets/secrets-sealer.ts";

export interface Subscription {
  readonly email: string;
  readonly stage: "pending" | "confirmed" | "unsubscribed";
}

/** Subscriptions to e-mails about incidents. */
export interface Subscriptions {
  /** Sends a confirmation e-mail. The response does not reveal whether the address is subscribed or over its limit. */
  subscribe(email: string, clientAddress: string): Promise<Subscription>;
  /** Confirms a subscription by the token of the confirmation link. Throws `invalid-auth-token`. */
  confirm(token: string): Promise<Subscription>;
  /** Ends a subscription by the token in each of its e-mails. Throws `invalid-auth-token`. */
  unsubscribe(token: string): Promise<Subscription>;
  /** Deletes unconfirmed requests a day after their expiry, and subscriptions 30 days after their end. */
  sweep(): Promise<void>;
}

const day = 86_400_000;

/** Milliseconds. `confirmWithin`: validity of a confirmation link. `endedKept`: retention of an ended subscription. */
const times = { confirmWithin: day, endedKept: 30 * day };

/**
 * Maximum numbers: `address`: confirmation e-mails to an address per day. `network`: subscription requests of a network
 * per hour.
 */
const max = { address: 3, network: 20 };

/** 5 bits per character: 200 random bits. */
const tokenLength = 40;

export interface SubscriptionsParts extends Pick<PlatformParts, "db" | "clock" | "ids" | "sealer"> {
  readonly throttles: Throttles;
  readonly mailer: Mailer;
}

const sealing = { accountId: "status", purpose: "unsubscribe" };

const invalid = (what: string): Failure => fail("invalid-auth-token", {}, { detail: what });

const noConfirmation = "expected the token of a confirmation link from the last 24 hours: subscribe again";
const noSubscription = "expected the token of an unsubscribe link: follow the link in a status e-mail";

/**
 * Returns the token that ends a subscription. Replaces a token that cannot be decrypted, because an e-mail must have a
 * link to unsubscribe; links in earlier e-mails then no longer work.
 */
export async function endTokenOf(tx: Tx, sealer: Sealer, { id, end_token: sealed }: SealedEnd): Promise<string> {
  try {
    return sealer.open(sealed, sealing).toString();
  } catch (error) {
    if (!isKeyLost(error)) throw error;
    const token = randomText(tokenLength);
    const changes = { end_hash: hashSecret(token), end_token: sealer.seal(Buffer.from(token), sealing) };
    await tx.sql.updateTable("status_subscribers").set(changes).where("id", "=", id).execute();
    return token;
  }
}

interface SealedEnd {
  readonly id: string;
  readonly end_token: Buffer;
}

export function createSubscriptions(parts: SubscriptionsParts): Subscriptions {
  const { db, clock, ids, throttles, mailer, sealer } = parts;

  /** Records a confirmation e-mail to an address and returns its token. Returns undefined at the daily limit. */
  async function recordRequest(tx: Tx, email: string): Promise<string | undefined> {
    const now = new Date(clock.now());
    const [token, end] = [randomText(tokenLength), randomText(tokenLength)];
    const since = new Date(now.getTime() - day);
    const until = new Date(now.getTime() + times.confirmWithin);
    const { rows } = await sql`
      insert into status_subscribers as s (id, email, confirm_hash, confirm_until, asked, end_hash, end_token)
      values (${ids.next("sub")}, ${email}, ${hashSecret(token)}, ${until}, array[${now}::timestamptz],
        ${hashSecret(end)}, ${sealer.seal(Buffer.from(end), sealing)})
      on conflict (email) do update set confirm_hash = excluded.confirm_hash, confirm_until = excluded.confirm_until,
          confirm_used = false, asked = array(select t from unnest(s.asked) t where t > ${since}) || excluded.asked
        where (select count(*) from unnest(s.asked) t where t > ${since}) < ${max.address}
      returning id`.execute(tx.sql);
    return rows.length > 0 ? token : undefined;
  }

  return {
    async subscribe(given, clientAddress) {
      const email = canonicalEmail(given);
      const network = networkOf(clientAddress, { v4: 24, v6: 48 });
      await throttles.take([{ name: `status-subscribe ${network}`, limit: max.network }], "subscription requests");
      await db.transaction(async (tx) => {
        const token = await recordRequest(tx, email);
        if (token === undefined) return;
        await mailer.send(tx, {
          to: email,
          kind: "status",
          subject: "Confirm your subscription to status updates",
          lines: [
            "Someone subscribed this address to e-mails about incidents. To confirm, follow the link within 24 hours.",
            "If it was not you, ignore this e-mail. You get no more e-mails unless the link is used.",
          ],
          button: { label: "Subscribe", url: mailer.link("status/confirm", token) },
        });
      });
      return { email, stage: "pending" };
    },

    async confirm(token) {
      const now = new Date(clock.now());
      const own = db.sql
        .updateTable("status_subscribers")
        .where("confirm_hash", "=", hashSecret(token))
        .where("confirm_until", ">", now);
      // A link works once: using it again must not renew a subscription that has ended since.
      const row = await own
        .set({
          confirmed_at: sql<Date>`case when confirm_used and confirmed_at is not null then confirmed_at else ${now} end`,
          ended_at: sql<Date | null>`case when confirm_used then ended_at end`,
          confirm_used: true,
        })
        .returning(["email", "ended_at"])
        .executeTakeFirst();
      if (!row) throw invalid(noConfirmation);
      return { email: row.email, stage: row.ended_at ? "unsubscribed" : "confirmed" };
    },

    async unsubscribe(token) {
      const row = await db.sql
        .updateTable("status_subscribers")
        .set({ ended_at: sql<Date>`coalesce(ended_at, ${new Date(clock.now())})` })
        .where("end_hash", "=", hashSecret(token))
        .returning("email")
        .executeTakeFirst();
      if (!row) throw invalid(noSubscription);
      return { email: row.email, stage: "unsubscribed" };
    },

    async sweep() {
      const now = clock.now();
      const lapsed = new Date(now - times.confirmWithin);
      const ended = new Date(now - times.endedKept);
      await db.sql
        .deleteFrom("status_subscribers")
        .where("confirm_until", "<", lapsed)
        .where((has) => has.or([has("confirmed_at", "is", null), has("ended_at", "<", ended)]))
        .execute();
    },
  };
}
