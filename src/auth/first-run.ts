import { insertMembership } from "../accounts/memberships.ts";
import { findDeveloperAccount, hasOwner, lockAccount } from "../accounts/store.ts";
import { canonicalEmail, findUserByEmail, insertUser, verifyUser } from "../accounts/users.ts";
import { userActor } from "../audit/audit-log.ts";
import type { AuditLog, Call } from "../kernel/call.ts";
import { fail, failFields } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { clientOf } from "./logins/client.ts";
import type { IssuedTokens, Logins } from "./logins/logins.ts";
import type { Passwords } from "./passwords/passwords.ts";

export interface FirstRunParts extends Pick<PlatformParts, "db" | "ids" | "clock"> {
  readonly passwords: Passwords;
  readonly logins: Logins;
  readonly audit: AuditLog;
}

/** The person who becomes the owner. Their address counts as verified. */
export interface FirstOwner {
  readonly email: string;
  readonly name: string;
  readonly password: string;
}

/** The first run of embedded mode, in which a person becomes the owner of the developer account. */
export interface FirstRun {
  /** Returns whether the developer account has no owner. */
  isOpen(): Promise<boolean>;
  /**
   * Creates the owner and a login. Throws `conflict` if the account has an owner, `email-already-registered` if the
   * address has a user, and `validation-failed`.
   */
  makeOwner(call: Pick<Call, "requestId" | "clientAddress" | "header">, owner: FirstOwner): Promise<IssuedTokens>;
}

const longest = { email: 254, name: 200, password: 256 };

function assertComplete({ email, name, password }: FirstOwner): void {
  if (!/^[^@\s]+@[^@\s]+$/.test(email) || email.length > longest.email)
    throw failFields("validation-failed", { email: "must be an e-mail address" });
  if (name.length > longest.name) throw failFields("validation-failed", { name: "must have at most 200 characters" });
  if (password.length < 10 || password.length > longest.password)
    throw failFields("validation-failed", { password: "must have 10 to 256 characters" });
}

export function createFirstRun({ db, ids, clock, passwords, logins, audit }: FirstRunParts): FirstRun {
  const taken = () =>
    fail("conflict", {}, { detail: "the service has an owner: log in, or ask the owner for an invite" });

  return {
    async isOpen() {
      return !(await hasOwner(db, await findDeveloperAccount(db)));
    },

    async makeOwner(call, owner) {
      assertComplete(owner);
      const email = canonicalEmail(owner.email);
      await passwords.assertStrong(owner.password, email, call.clientAddress);
      const passwordHash = await passwords.hash(owner.password, call.clientAddress);
      return db.transaction(async (tx) => {
        const accountId = await findDeveloperAccount(tx);
        // A concurrent request waits for this lock, and is rejected because the account then has an owner.
        await lockAccount(tx, accountId);
        if (await hasOwner(tx, accountId)) throw taken();
        const now = new Date(clock.now());
        const id = ids.next("usr");
        const name = owner.name.trim() || email.split("@", 1)[0] || email;
        const isNew =
          !(await findUserByEmail(tx, email, clock.now())) &&
          (await insertUser(tx, { id, email, name, passwordHash, createdAt: now }));
        const verification = { membershipId: ids.next("mem"), now, passwordHash: undefined };
        const verified = isNew ? await verifyUser(tx, id, verification) : undefined;
        if (!verified)
          throw fail("email-already-registered", {}, { detail: "the address has a user: choose another address" });
        await insertMembership(tx, { id: ids.next("mem"), accountId, userId: id, role: "owner", createdAt: now });
        const { user } = verified;
        const login = await logins.open(tx, { user, accountId, client: clientOf(call) });
        audit.record(tx, { accountId, action: "login.create", subject: login.loginId, actor: userActor(user), call });
        return login;
      });
    },
  };
}
