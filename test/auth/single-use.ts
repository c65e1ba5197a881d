import { expect, test } from "vitest";
import { codeStep, enrolFactor } from "../support/authenticator.ts";
import { tokenOfMail } from "../support/people.ts";
import type { PeopleDeployment } from "../support/people-deployment.ts";
import { type Answer, restClient } from "../support/rest.ts";

const times = 500;

/** Concurrent uses of secrets that are valid once, over two gateways. */
export function singleUseTests(sceneOf: () => PeopleDeployment): void {
  /** Posts from a unique network to one of the gateways. */
  function post(index: number, path: string, body: unknown, key = ""): Promise<Answer> {
    const headers = { "x-forwarded-for": `2001:db8:${index.toString(16)}::1` };
    return restClient({ url: sceneOf().urls[index % 2 === 0 ? 0 : 1], key })(path, body, { headers });
  }

  /** Posts the same body 500 times at once, half of them to each gateway. */
  function postAtOnce(path: string, body: unknown, key?: string): Promise<Answer[]> {
    return Promise.all(Array.from({ length: times }, (_, index) => post(index, path, body, key)));
  }

  const outcomeOf = ({ status, body }: Answer): string => (status < 300 ? "done" : body.type.split("/").at(-1));

  function countOutcomes(answers: readonly Answer[]): Record<string, number> {
    return Object.fromEntries([...Map.groupBy(answers, outcomeOf)].map(([outcome, all]) => [outcome, all.length]));
  }

  const onceOnly = { done: 1, "invalid-auth-token": times - 1 };

  test("a magic link logs in once when 500 clients use it at once", async () => {
    const { email, rest } = await sceneOf().person();
    await post(0, "/v1/auth/magic-link/request", { email });
    const token = await tokenOfMail(sceneOf().mailbox, email);
    const before = (await rest("/v1/account/logins")).body.data.length;
    expect(countOutcomes(await postAtOnce("/v1/auth/magic-link/consume", { token }))).toEqual(onceOnly);
    expect((await rest("/v1/account/logins")).body.data).toHaveLength(before + 1);
  }, 120_000);

  test("a reset link sets one password when many clients use it at once", async () => {
    const { email } = await sceneOf().person();
    await post(0, "/v1/auth/password-reset/request", { email });
    const token = await tokenOfMail(sceneOf().mailbox, email);
    const passwords = Array.from({ length: 50 }, (_, index) => `password number ${index}`);
    const answers = await Promise.all(
      passwords.map((password, index) => post(index, "/v1/auth/password-reset/confirm", { token, password })),
    );
    expect(countOutcomes(answers)).toEqual({ done: 1, "invalid-auth-token": passwords.length - 1 });
    const password = passwords[answers.findIndex(({ status }) => status < 300)];
    expect((await post(0, "/v1/auth/login", { email, password })).status).toBe(200);
  }, 120_000);

  test.each(["a code of the app", "a recovery code"])(
    "%s steps up once when 500 clients use it at once",
    async (kind) => {
      const person = await sceneOf().person("enterprise");
      const { codeAt, recoveryCodes } = await enrolFactor(person);
      const code = kind === "a recovery code" ? recoveryCodes[0] : codeAt(Date.now() + codeStep);
      const outcomes = countOutcomes(await postAtOnce("/v1/auth/mfa/step-up", { code }, person.accessToken));
      const { done, "invalid-credentials": wrong = 0, "rate-limited": braked = 0, ...others } = outcomes;
      expect([done, others]).toEqual([1, {}]);
      expect(wrong).toBeLessThanOrEqual(10);
      expect(wrong + braked).toBe(times - 1);
    },
    120_000,
  );

  test("a refresh token used 500 times at once has one successor, and ends the login when it is used later", async () => {
    const { refreshToken, rest } = await sceneOf().person();
    const answers = await postAtOnce("/v1/auth/refresh", { refresh_token: refreshToken });
    expect(countOutcomes(answers)).toEqual({ done: times });
    const pairs = new Set(answers.map(({ body }) => JSON.stringify(body)));
    expect(pairs.size).toBe(1);
    expect((await rest("/v1/account/logins")).body.data).toHaveLength(1);
    const { access_token: key, refresh_token: next } = answers[0]?.body ?? {};
    expect((await post(1, "/v1/auth/refresh", { refresh_token: next })).status).toBe(200);
    expect(outcomeOf(await post(0, "/v1/auth/refresh", { refresh_token: refreshToken }))).toBe("invalid-auth-token");
    expect(outcomeOf(await post(1, "/v1/auth/logout", {}, key))).toBe("revoked-key");
  }, 120_000);
}
