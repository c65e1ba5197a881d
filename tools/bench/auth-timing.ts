import { join } from "node:path";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { freshEmail, goodPassword, tokenOfMail } from "../../test/support/people.ts";
import type { PeopleGateway } from "../../test/support/people-gateway.ts";
import type { Bench, Row } from "./bench.ts";
import { copyChanged } from "./changed-sources.ts";
import { spread } from "./samples.ts";

const { logIn, signUp, verifyEmail, requestMagicLink, requestPasswordReset } = AuthService.method;

/** Range of the AUC in which response times do not reveal users; 0.5 is chance. */
const bar = { low: 0.45, high: 0.55 };

const missed = "  MISSED";

/** Users created in parallel. */
const atOnce = 8;

const password = "not the right password";

/** Requests with an e-mail address. */
const questions = [
  { what: "a wrong password", method: logIn, more: { password } },
  { what: "a request for a magic link", method: requestMagicLink, more: {} },
  { what: "a request for a password reset", method: requestPasswordReset, more: {} },
] as const;

/** A source change that removes the protection, so that responses for unknown addresses return immediately. */
const withoutDecoy = {
  file: "src/auth/passwords/passwords.ts",
  from: "decoy ??= ",
  to: "if (!kept) return false;\n      decoy ??= ",
};

/** Measures whether response times reveal that an address has a user. */
export const authTiming: Bench = {
  name: "auth-timing",
  title: "addresses with a user (left) and without a user (right), in turn; AUC of their times",
  async run(scale): Promise<Row[]> {
    const rows = await measureIn(process.cwd(), questions, scale.of(1_000, 150));
    await using changed = await copyChanged(withoutDecoy);
    const changedRows = await measureIn(changed.root, questions.slice(0, 1), scale.of(300, 100));
    return [...rows, ...changedRows.map(asFault)];
  },
};

/** Inverts the verdict, because sources with the fault must miss the bar. */
function asFault({ what, verdict, ...sides }: Row): Row {
  const isWritten = verdict.endsWith(missed);
  return {
    ...sides,
    what: `${what}, without the decoy's hash`,
    verdict: isWritten ? `detected, as expected: ${verdict.replace(missed, "")}` : `NOT DETECTED: ${verdict}${missed}`,
  };
}

/** Measures a gateway of the given sources. */
async function measureIn(root: string, asked: readonly (typeof questions)[number][], count: number): Promise<Row[]> {
  const { startPeopleGateway }: typeof import("../../test/support/people-gateway.ts") = await import(
    join(root, "test/support/people-gateway.ts")
  );
  await using gateway = await startPeopleGateway();
  const users = await makeUsers(gateway, count);
  const rows: Row[] = [];
  for (const { what, method, more } of asked) {
    const found = { user: { times: [] as number[], hashes: 0 }, unknown: { times: [] as number[], hashes: 0 } };
    const isUser = new Set(users);
    for (const email of shuffle([...users, ...users.map(freshEmail)])) {
      const side = isUser.has(email) ? found.user : found.unknown;
      const before = await countHashes(gateway);
      const begin = performance.now();
      await gateway.call("REST", method, { email, ...more });
      side.times.push(performance.now() - begin);
      side.hashes += (await countHashes(gateway)) - before;
    }
    rows.push(toRow(what, found));
  }
  return rows;
}

type Side = { readonly times: readonly number[]; readonly hashes: number };

function toRow(what: string, { user, unknown }: { readonly user: Side; readonly unknown: Side }): Row {
  const auc = areaUnderCurve(user.times, unknown.times);
  const isMet = auc >= bar.low && auc <= bar.high && user.hashes === unknown.hashes;
  const side = ({ times, hashes }: Side): string => `${spread(times)}, ${hashes} hashes`;
  const verdict = `bar AUC ${bar.low} to ${bar.high} and as many hashes, measured ${auc.toFixed(3)}`;
  return { what, ours: side(user), bare: side(unknown), verdict: isMet ? verdict : `${verdict}${missed}` };
}

/** Returns the probability that a sample of the first side is larger (Mann-Whitney U over all pairs). */
function areaUnderCurve(first: readonly number[], second: readonly number[]): number {
  const sorted = second.toSorted((a, b) => a - b);
  const shorter = (time: number): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return first.reduce((sum, time) => sum + shorter(time), 0) / (first.length * second.length);
}

/** Shuffles the addresses. The e-mail to a user slows the next request, which must not always be an unknown address. */
function shuffle(emails: readonly string[]): string[] {
  const drawn = emails.map((email): [number, string] => [Math.random(), email]);
  return drawn.sort(([a], [b]) => a - b).map(([, email]) => email);
}

/** Signs users up and verifies their addresses. */
async function makeUsers(gateway: PeopleGateway, count: number): Promise<string[]> {
  const emails = Array.from({ length: count }, freshEmail);
  const left = [...emails];
  async function make(): Promise<void> {
    for (let email = left.pop(); email !== undefined; email = left.pop()) {
      // Sign-ups from one network are throttled.
      const from = `2001:db8:${left.length.toString(16)}::1`;
      const signedUp = await gateway.call("REST", signUp, { email, password: goodPassword }, { from });
      if (signedUp.slug !== "") throw new Error(`a sign-up was refused: ${signedUp.slug}`);
      await gateway.call("REST", verifyEmail, { token: await tokenOfMail(gateway.mailbox, email) });
    }
  }
  await Promise.all(Array.from({ length: atOnce }, make));
  return emails;
}

async function countHashes({ app }: PeopleGateway): Promise<number> {
  const metric = await app.metrics.getSingleMetric("pilothouse_password_hashes_total")?.get();
  return metric?.values[0]?.value ?? 0;
}
