import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { findUserOfLogin, type UserRow } from "../../accounts/users.ts";
import {
  type ConfirmTotpRequest,
  ConfirmTotpResponseSchema,
  type EnrolTotpRequest,
  type MfaService,
  type StepUpRequest,
  StepUpResponseSchema,
  TotpEnrolmentSchema,
} from "../../gen/pilothouse/v1/mfa_pb.ts";
import type { Throttles } from "../../identity/throttle.ts";
import { type Call, loginOf, steppedUpFor } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import type { Mailer } from "../../mail/mailer.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { clientOf } from "../logins/client.ts";
import type { Logins } from "../logins/logins.ts";
import type { ProvePassword } from "../passwords/password-proof.ts";
import { factorMail } from "./mfa-mails.ts";
import { removeWithMail } from "./removal.ts";
import {
  beginEnrolment,
  cancelRemoval,
  countRecoveryCodes,
  endEnrolment,
  replaceRecoveryCodes,
  takeCounter,
  useRecoveryCode,
} from "./store.ts";
import { counterOfCode, describeSeed, hashRecoveryCode, newRecoveryCodes, newSeed } from "./totp.ts";

/** Milliseconds for which a started enrolment waits for a code. */
const enrolmentMs = 600_000;

/** Maximum failed codes of a user per hour. */
const maxAttempts = 10;

export interface MfaServiceParts extends Pick<PlatformParts, "db" | "bus" | "clock" | "sealer"> {
  readonly throttles: Throttles;
  readonly provePassword: ProvePassword;
  readonly logins: Logins;
  readonly mailer: Mailer;
}

const wrongCode = (): Failure =>
  fail(
    "invalid-credentials",
    {},
    { detail: "the code is wrong, or was used before: wait for the next one, or send a recovery code" },
  );
const conflict = (detail: string): Failure => fail("conflict", {}, { detail });

export function createMfaService(parts: MfaServiceParts): ServiceImplementation<typeof MfaService> {
  const { db, bus, clock, sealer, throttles, provePassword, logins, mailer } = parts;
  const contextOf = (userId: string) => ({ accountId: userId, purpose: "totp" });

  /** Runs an attempt, which counts against the limit unless it succeeds. */
  async function tryCode<T>({ id }: UserRow, run: (tx: Tx) => Promise<T>): Promise<T> {
    const counted = await throttles.take(
      [{ name: `totp ${id}`, limit: maxAttempts }],
      "attempts at a code of this user",
    );
    const result = await db.transaction(run);
    await throttles.refund(counted);
    return result;
  }

  /** Verifies and uses up a code of the app, or a recovery code. Throws `invalid-credentials`. */
  async function useCode(tx: Tx, user: UserRow, sealed: Buffer, code: string): Promise<void> {
    const seed = sealer.open(sealed, contextOf(user.id));
    if (code.includes("-")) {
      if (!(await useRecoveryCode(tx, user.id, hashRecoveryCode(seed, code)))) throw wrongCode();
      await mailer.send(tx, factorMail("recovered", user));
      return;
    }
    const counter = counterOfCode(seed, code, clock.now());
    if (counter === undefined || !(await takeCounter(tx, user.id, counter))) throw wrongCode();
  }

  return {
    async stepUp(call: Call, { code }: StepUpRequest) {
      const login = loginOf(call);
      const user = await findUserOfLogin(db, login);
      const { totp_seed: sealed, totp_enrolled_at: enrolledAt } = user;
      if (!sealed || !enrolledAt)
        throw conflict("the user has no second factor: enrol one with POST /v1/auth/mfa/totp");
      const now = clock.now();
      return tryCode(user, async (tx) => {
        await useCode(tx, user, sealed, code);
        // The factor is not lost, so its removal is cancelled.
        await cancelRemoval(tx, user.id);
        await logins.stepUp(tx, login, new Date(now));
        call.audit(tx, { subject: login.loginId, data: { recovery_code: code.includes("-") } });
        const recoveryCodesLeft = await countRecoveryCodes(tx, user.id);
        return create(StepUpResponseSchema, { expiresAt: timestampFromMs(now + steppedUpFor), recoveryCodesLeft });
      });
    },

    async enrolTotp(call: Call, { password }: EnrolTotpRequest) {
      const user = await findUserOfLogin(db, loginOf(call));
      await provePassword({ user, email: user.email, password, client: clientOf(call) });
      const seed = newSeed();
      const now = clock.now();
      await db.transaction(async (tx) => {
        const sealed = sealer.seal(seed, contextOf(user.id));
        if (!(await beginEnrolment(tx, user.id, sealed, new Date(now))))
          throw conflict("the user has a second factor: remove it first with DELETE /v1/auth/mfa/totp");
        call.audit(tx, { subject: user.id });
      });
      const { secret, url } = describeSeed(seed, user.email);
      return create(TotpEnrolmentSchema, { secret, otpauthUrl: url, expiresAt: timestampFromMs(now + enrolmentMs) });
    },

    async confirmTotp(call: Call, { code }: ConfirmTotpRequest) {
      const login = loginOf(call);
      const user = await findUserOfLogin(db, login);
      const { totp_seed: sealed, totp_begun_at: begunAt } = user;
      const now = clock.now();
      const noEnrolment = () =>
        conflict("no enrolment was started within the last 10 minutes: start one with POST /v1/auth/mfa/totp");
      if (!sealed || !begunAt || user.totp_enrolled_at || now - begunAt.getTime() >= enrolmentMs) throw noEnrolment();
      return tryCode(user, async (tx) => {
        const seed = sealer.open(sealed, contextOf(user.id));
        const counter = counterOfCode(seed, code, now);
        if (counter === undefined) throw wrongCode();
        if (!(await endEnrolment(tx, { userId: user.id, seed: sealed, counter }, new Date(now)))) throw noEnrolment();
        const recoveryCodes = newRecoveryCodes();
        const hashes = recoveryCodes.map((each) => hashRecoveryCode(seed, each));
        await replaceRecoveryCodes(tx, user.id, hashes);
        await logins.stepUp(tx, login, new Date(now));
        // Cached bearers still state that the user has no second factor.
        tx.afterCommit(() => bus.publish("bearer-changed", user.id));
        call.audit(tx, { subject: user.id });
        await mailer.send(tx, factorMail("enrolled", user));
        return create(ConfirmTotpResponseSchema, { recoveryCodes, enrolledAt: timestampFromMs(now) });
      });
    },

    async removeTotp(call: Call) {
      const user = await findUserOfLogin(db, loginOf(call));
      await db.transaction(async (tx) => {
        if (!(await removeWithMail(parts, tx, user)))
          throw fail(
            "not-found",
            {},
            { detail: "the user has no second factor: enrol one with POST /v1/auth/mfa/totp" },
          );
        call.audit(tx, { subject: user.id });
      });
      return create(EmptySchema);
    },
  };
}
