import { expect, test } from "vitest";
import { type Person, tokenOfMail } from "../support/people.ts";
import type { PeopleDeployment } from "../support/people-deployment.ts";
import { type Rest, restClient } from "../support/rest.ts";

/** Concurrent changes of a team over two gateways. */
export function scaledTeamTests(sceneOf: () => PeopleDeployment): void {
  async function invited(owner: Person, email: string): Promise<string> {
    expect((await owner.rest("/v1/team/invites", { email })).status).toBe(201);
    return tokenOfMail(sceneOf().mailbox, email);
  }

  const clients = (key: string): Rest[] => sceneOf().urls.map((url) => restClient({ url, key }));

  test("an invite adds one member when 500 users accept it at once over two gateways", async () => {
    const [owner, grace] = [await sceneOf().person("enterprise"), await sceneOf().person("enterprise")];
    const token = await invited(owner, grace.email);
    const rests = clients(grace.accessToken);
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, index) => rests[index % 2]?.("/v1/team/invites/accept", { token })),
    );
    const outcomes = Object.groupBy(answers, (answer) => `${answer?.status} ${answer?.body.type?.split("/").at(-1)}`);
    const counts = Object.entries(outcomes).map(([outcome, all]) => [outcome, all?.length]);
    expect(Object.fromEntries(counts)).toEqual({ "200 undefined": 1, "401 invalid-auth-token": 499 });
    const { body } = await owner.rest("/v1/team/members");
    expect(body.data.map(({ email }: { email: string }) => email)).toEqual([grace.email, owner.email]);
  }, 120_000);

  test("one owner remains when two leave at once over two gateways", async () => {
    const [owner, grace] = [await sceneOf().person(), await sceneOf().person()];
    const { body: member } = await grace.rest("/v1/team/invites/accept", { token: await invited(owner, grace.email) });
    const role = { method: "PATCH", body: JSON.stringify({ role: "owner" }) };
    expect((await owner.rest(`/v1/team/members/${member.id}`, {}, role)).body.role).toBe("owner");
    const { email, password } = grace;
    const login = await grace.rest("/v1/auth/login", { email, password, account_id: owner.accountId });
    const [here, there] = sceneOf().urls.map((url, index) =>
      restClient({ url, key: index === 0 ? owner.accessToken : login.body.access_token }),
    );
    const answers = await Promise.all([here?.("/v1/team/leave", {}), there?.("/v1/team/leave", {})]);
    expect(answers.map((answer) => answer?.status).toSorted()).toEqual([204, 409]);
  }, 120_000);

  test("a login that leaves twice at once over two gateways leaves once, and is refused the second time", async () => {
    const [owner, grace] = [await sceneOf().person(), await sceneOf().person()];
    await grace.rest("/v1/team/invites/accept", { token: await invited(owner, grace.email) });
    const { email, password } = grace;
    const login = await grace.rest("/v1/auth/login", { email, password, account_id: owner.accountId });
    const rests = sceneOf().urls.map((url) => restClient({ url, key: login.body.access_token }));
    const answers = await Promise.all(rests.map((rest) => rest("/v1/team/leave", {})));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 401]);
  }, 120_000);
}
