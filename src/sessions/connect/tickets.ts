import { sql } from "kysely";
import { keyBearers } from "../../identity/api-keys/key-bearer.ts";
import { tokenText } from "../../identity/token-text.ts";
import type { BearerKind } from "../../kernel/bearer-kind.ts";
import type { Database, Queryable } from "../../platform/postgres/database.ts";

/** Seconds for which a ticket accepts a connection. */
export const ticketOpensFor = 60;

export const ticketText = tokenText("pht_", "tkt");

/** A ticket to insert. Only the hash of its secret is stored. */
export interface NewTicket {
  readonly id: string;
  readonly keyId: string;
  readonly secretHash: Buffer;
  readonly optionsHash: Buffer;
  readonly opensUntil: Date;
}

export async function insertTicket(db: Queryable, ticket: NewTicket): Promise<void> {
  await db.sql
    .insertInto("connect_tickets")
    .values({
      id: ticket.id,
      key_id: ticket.keyId,
      secret_hash: ticket.secretHash,
      options_hash: ticket.optionsHash,
      opens_until: ticket.opensUntil,
      used_at: null,
    })
    .execute();
}

/** Marks a ticket as used. Returns false if it was used before or is bound to other options. */
export async function useTicket(db: Queryable, id: string, optionsHash: Buffer): Promise<boolean> {
  const used = await db.sql
    .updateTable("connect_tickets")
    .set({ used_at: sql<Date>`app_now()` })
    .where("id", "=", id)
    .where("used_at", "is", null)
    .where("options_hash", "=", optionsHash)
    .returning("id")
    .executeTakeFirst();
  return used !== undefined;
}

/**
 * Deletes unused tickets after 10 minutes. Deletes used tickets after 25 hours, because a connection lasts at most as
 * long as a session: a day.
 */
export async function sweepTickets(db: Database): Promise<void> {
  await sql`
    delete from connect_tickets
    where created_at < app_now() - interval '25 hours'
      or (used_at is null and created_at < app_now() - interval '10 minutes')`.execute(db.sql);
}

/**
 * Creates the bearer kind of tickets. A ticket allows only connecting, has the rights of its key, and is valid only
 * while its key is valid.
 */
export function ticketBearers(db: Database): BearerKind {
  const keys = keyBearers(db);
  return {
    prefix: ticketText.prefix,
    parse: ticketText.parse,
    async find(ids) {
      const rows = await db.sql
        .selectFrom("connect_tickets")
        .selectAll()
        .where("id", "in", [...ids])
        .execute();
      const credentials = await keys.find(rows.map((row) => row.key_id));
      return new Map(
        rows.flatMap((row) => {
          const ofKey = credentials.get(row.key_id);
          if (!ofKey) return [];
          const ticket = {
            ...ofKey,
            principal: { ...ofKey.principal, ticketId: row.id },
            secretHash: row.secret_hash,
            opensUntil: row.opens_until,
            belongsTo: [...ofKey.belongsTo, row.key_id],
          };
          return [[row.id, ticket] as const];
        }),
      );
    },
  };
}
