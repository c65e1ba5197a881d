import { expect, test } from "vitest";
import { type Person, tokenOfMail } from "../../support/people.ts";
import type { PeopleDeployment } from "../../support/people-deployment.ts";
import { restClient } from "../../support/rest.ts";
import { countOpenStreams, openCdpStreams, openEverywhere, openLives } from "./open-streams.ts";

/** Ends of credentials that are in use at another gateway. */
export function endedBearerTests(sceneOf: () => PeopleDeployment): void {
  /** Credential that will be revoked or expire. */
  interface Doomed {
    readonly bearer: string;
    /** Ends the credential through the first gateway. Returns the time of its end, in milliseconds of `Date.now()`. */
    end(): Promise<number>;
    /** Problem slug for a request with the ended credential. */
    readonly slug: string;
    /** The session also ends, possibly before the stream is closed. */
    readonly endsSession?: true;
  }

  /** Expects a 204 and returns the time of the response. */
  async function done(request: Promise<{ readonly status: number }>): Promise<number> {
    const { status } = await request;
    expect(status).toBe(204);
    return Date.now();
  }

  const remove = (who: Person, path: string) => who.rest(path, undefined, { method: "DELETE" });

  async function revokedKey(owner: Person): Promise<Doomed> {
    const { body } = await owner.rest("/v1/api-keys", { name: "revoked" });
    return { bearer: body.key, slug: "revoked-key", end: () => done(remove(owner, `/v1/api-keys/${body.id}`)) };
  }

  /** Milliseconds for the slowest opening of all streams so far. */
  let openingMs = 0;

  /** The grace period of a rotated key ends with the key's own expiry, if that is within 24 hours. */
  async function rotatedKey(owner: Person): Promise<Doomed> {
    // The streams must be open before.
    const endsAt = Date.now() + 2_000 + Math.ceil(4 * openingMs);
    const { body } = await owner.rest("/v1/api-keys", { name: "rotated", expires_at: new Date(endsAt).toISOString() });
    const rotated = await owner.rest(`/v1/api-keys/${body.id}/rotate`, {});
    expect(Date.parse(rotated.body.grace_expires_at)).toBe(endsAt);
    return { bearer: body.key, slug: "expired-key", end: async () => endsAt };
  }

  async function removedMember(owner: Person): Promise<Doomed> {
    const grace = await sceneOf().person();
    const { email, password } = grace;
    await owner.rest("/v1/team/invites", { email });
    const token = await tokenOfMail(sceneOf().mailbox, email);
    const { body: member } = await grace.rest("/v1/team/invites/accept", { token });
    const login = await grace.rest("/v1/auth/login", { email, password, account_id: owner.accountId });
    const end = () => done(remove(owner, `/v1/team/members/${member.id}`));
    return { bearer: login.body.access_token, slug: "revoked-key", end };
  }

  async function disabledAccount({ accessToken, accountId }: Person): Promise<Doomed> {
    return {
      bearer: accessToken,
      slug: "revoked-key",
      endsSession: true,
      async end() {
        await sceneOf().deployment.admin("disable-account", "--account", accountId);
        return Date.now();
      },
    };
  }

  async function secondLogin({ email, password, rest }: Person): Promise<string> {
    return (await rest("/v1/auth/login", { email, password })).body.access_token;
  }

  async function loggedOut(owner: Person): Promise<Doomed> {
    const bearer = await secondLogin(owner);
    const rest = restClient({ url: sceneOf().urls[0], key: bearer });
    return { bearer, slug: "revoked-key", end: () => done(rest("/v1/auth/logout", {})) };
  }

  async function endedLogin(owner: Person): Promise<Doomed> {
    const bearer = await secondLogin(owner);
    const { data } = (await owner.rest("/v1/account/logins")).body;
    const { id } = data.find(({ current }: { current: boolean }) => !current);
    return { bearer, slug: "revoked-key", end: () => done(remove(owner, `/v1/account/logins/${id}`)) };
  }

  const causes: [cause: string, doom: (owner: Person) => Promise<Doomed>][] = [
    ["a key is revoked", revokedKey],
    ["a member is removed", removedMember],
    ["the grace of a rotated key is over", rotatedKey],
    ["an account is disabled", disabledAccount],
    ["a user logs out", loggedOut],
    ["a user ends a login in the list", endedLogin],
  ];

  test.each(causes)(
    "every stream, CDP connection and viewer on another gateway ends within 5 s when %s",
    async (_cause, doom) => {
      const owner = await sceneOf().person();
      const { body: session } = await owner.rest("/v1/sessions", {});
      const { bearer, slug, endsSession, end } = await doom(owner);
      const { url, grpcAddress, internalUrl } = sceneOf().deployment.gateway(1);
      const over = new AbortController();
      const client = { url, grpcAddress, key: bearer, sessionId: session.id, signal: over.signal };
      const beganAt = performance.now();
      const opened = [
        ...(await openEverywhere(client)),
        ...(await openCdpStreams(client)),
        ...(await openLives(client)),
      ];
      await expect.poll(() => countOpenStreams(internalUrl)).toBe(opened.length);
      openingMs = Math.max(openingMs, performance.now() - beganAt);
      const endedAt = end();
      const seen = await Promise.all(
        opened.map(async ({ transportName, ended }) => {
          const problem = await ended;
          const receivedAt = Date.now();
          return { transportName, slug: problem, late: receivedAt - (await endedAt) > 5_000 };
        }),
      );
      over.abort();
      const isMeant = endsSession ? new RegExp(`^(${slug}|none|session-destroyed.*)$`) : new RegExp(`^${slug}$`);
      expect(seen).toEqual(
        seen.map(({ transportName }) => ({ transportName, slug: expect.stringMatching(isMeant), late: false })),
      );
      const refused = await restClient({ url, key: bearer })("/v1/sessions");
      expect(refused.body.type).toMatch(new RegExp(`/${slug}$`));
      await expect.poll(() => countOpenStreams(internalUrl)).toBe(0);
    },
    120_000,
  );

  test("disabling an account ends its sessions as destroyed, and enabling it makes its credentials valid again", async () => {
    const owner = await sceneOf().person();
    const { body: session } = await owner.rest("/v1/sessions", {});
    await sceneOf().deployment.admin("disable-account", "--account", owner.accountId);
    const { email, password, rest } = owner;
    const login = await rest("/v1/auth/login", { email, password });
    expect([login.status, login.body.detail]).toEqual([403, "the account is disabled"]);
    const state = async () => (await rest(`/v1/sessions/${session.id}`)).body;
    expect((await state()).type).toMatch(/revoked-key$/);
    const isHeld = () => sceneOf().deployment.fakeWorkers.some(({ held }) => held.has(session.id));
    await expect.poll(isHeld, { timeout: 20_000 }).toBe(false);
    await sceneOf().deployment.admin("enable-account", "--account", owner.accountId);
    await expect.poll(async () => (await state()).ended_reason, { timeout: 10_000 }).toBe("destroyed");
    expect((await rest("/v1/sessions", {})).status).toBe(201);
  }, 60_000);
}
