import { insertMembership } from "../accounts/memberships.ts";
import { findAccount, lockAccount } from "../accounts/store.ts";
import { canonicalEmail, findUser } from "../accounts/users.ts";
import { userActor } from "../audit/audit-log.ts";
import { authorizeGrant, membershipAs } from "../identity/api-keys/grants.ts";
import type { AuditLog, Call, Principal } from "../kernel/call.ts";
import type { Mailer } from "../mail/mailer.ts";
import { fail } from "../platform/errors.ts";
import { randomText } from "../platform/ids.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { hashSecret } from "../platform/secrets/secrets.ts";
import { notifyActivity } from "./activity.ts";
import {
  acceptInvite,
  findOpenInvite,
  findSends,
  type InviteRole,
  type InviteRow,
  inviteStatusOf,
  lockInvite,
  revokeInvite,
  upsertInvite,
} from "./invite-store.ts";
import { findMember, type MemberRow } from "./member-store.ts";

const day = 86_400_000;

/** Milliseconds for which an invite is valid. */
const goodFor = 7 * day;
/** Maximum invites that an account sends in 24 hours. */
const maxPerDay = 20;

/** Characters of a token, with 5 random bits each: 200 bits. */
const tokenLength = 40;

export interface InvitesParts extends Pick<PlatformParts, "ids" | "clock"> {
  readonly mailer: Mailer;
  readonly audit: AuditLog;
}

export interface InviteRequest {
  /** Identifier for a new invite; an open invite keeps its own identifier. */
  readonly id: string;
  readonly email: string;
  readonly role: InviteRole;
}

export interface Invites {
  /**
   * Sends an invite. Throws `forbidden` if the caller may not grant the role, `conflict` for a member, and
   * `rate-limited`.
   */
  send(tx: Tx, by: Principal, request: InviteRequest): Promise<InviteRow>;
  /** Revokes an invite. Throws `not-found`, and `conflict` if the invite is not open. */
  revoke(tx: Tx, by: Principal, id: string): Promise<InviteRow>;
  /** Adds a user to the account of an invite. Throws `invalid-auth-token`, or `conflict` if the user is a member. */
  accept(tx: Tx, call: Call, userId: string, token: string): Promise<MemberRow>;
  /** Like `accept`, for the invite of a sign-up. Returns undefined if the invite is no longer open. */
  acceptOpen(tx: Tx, call: Call, userId: string, tokenHash: Buffer): Promise<MemberRow | undefined>;
  /** Finds the open invite of a sign-up. Throws `invalid-auth-token`. */
  find(db: Queryable, email: string, token: string): Promise<InviteRow>;
}

const invalidToken = () =>
  fail(
    "invalid-auth-token",
    {},
    { detail: "the invite is malformed, used, revoked, expired, or for another address: ask for another invite" },
  );

export function createInvites({ ids, clock, mailer, audit }: InvitesParts): Invites {
  async function assertSendsLeft(tx: Tx, accountId: string, now: number): Promise<void> {
    const sends = await findSends(tx, accountId, new Date(now - day));
    const [oldest] = sends.slice(-maxPerDay);
    if (sends.length < maxPerDay || !oldest) return;
    const seconds = Math.max(1, Math.ceil((oldest.getTime() + day - now) / 1_000));
    const detail = `an account can send ${maxPerDay} invites in 24 hours; wait ${seconds} s`;
    throw fail("rate-limited", { retry_after_seconds: seconds }, { detail, retryAfter: seconds });
  }

  async function acceptOpen(tx: Tx, call: Call, userId: string, tokenHash: Buffer): Promise<MemberRow | undefined> {
    const now = new Date(clock.now());
    const user = await findUser(tx, userId);
    const accepted = user && (await acceptInvite(tx, { tokenHash, email: user.email, now }));
    if (!accepted) return undefined;
    const { id: inviteId, account_id: accountId, role } = accepted;
    const membership = { id: ids.next("mem"), accountId, userId: user.id, role, createdAt: now };
    if (!(await insertMembership(tx, membership))) {
      throw fail("conflict", {}, { detail: "you are already a member of the account" });
    }
    audit.record(tx, {
      accountId,
      actor: userActor(user),
      action: "team_invite.accept",
      call,
      subject: inviteId,
      data: { member: membership.id, role },
    });
    const member = await findMember(tx, accountId, { userId: user.id });
    if (!member) throw new Error("the inserted membership does not exist");
    await notifyActivity(tx, mailer, member, "joined");
    return member;
  }

  return {
    async send(tx, by, { id, role, ...request }) {
      const { accountId } = by;
      const [email, now, token] = [canonicalEmail(request.email), clock.now(), randomText(tokenLength)];
      await lockAccount(tx, accountId);
      const { userId: invited_by, keyId: invited_by_key } = await authorizeGrant(tx, by, membershipAs(role));
      if (await findMember(tx, accountId, { email })) {
        throw fail("conflict", {}, { detail: `${email} is a member of the account` });
      }
      await assertSendsLeft(tx, accountId, now);
      const invite = {
        id,
        account_id: accountId,
        email,
        role,
        invited_by,
        invited_by_key,
        token_hash: hashSecret(token),
      };
      const row = await upsertInvite(tx, { ...invite, now: new Date(now), expires_at: new Date(now + goodFor) });
      const { name } = await findAccount(tx, accountId);
      await mailer.send(tx, {
        to: email,
        kind: "account",
        subject: "You are invited to a team",
        lines: [
          `${by.name} invites you to join the account ${name} on Pilothouse as ${role === "admin" ? "an admin" : "a member"}.`,
          "The link is only for you and works for 7 days. If you did not expect this invitation, ignore this e-mail.",
        ],
        button: { label: "Join the team", url: mailer.link("invite", token) },
      });
      return row;
    },

    async revoke(tx, { accountId }, id) {
      const now = clock.now();
      const row = await lockInvite(tx, { id, accountId, now: new Date(now) });
      if (!row) throw fail("not-found", {}, { detail: "no invite has this id" });
      const status = inviteStatusOf(row, now);
      if (status !== "pending") throw fail("conflict", {}, { detail: `the invite is ${status}` });
      await revokeInvite(tx, id, new Date(now));
      return row;
    },

    acceptOpen,
    async accept(tx, call, userId, token) {
      const member = await acceptOpen(tx, call, userId, hashSecret(token));
      if (!member) throw invalidToken();
      return member;
    },
    async find(db, email, token) {
      const shown = { tokenHash: hashSecret(token), email, now: new Date(clock.now()) };
      const found = await findOpenInvite(db, shown);
      if (!found) throw invalidToken();
      return found;
    },
  };
}
