import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { createPasswords, type Passwords } from "../../../src/auth/passwords/passwords.ts";
import { cheapPasswords } from "../../support/cheap-passwords.ts";

const { assertStrong, hash, verify } = createPasswords(new Registry(), cheapPasswords);
const email = "ada.lovelace@example.com";

/** Complaint about a password, "" for a strong one. */
function faultOf(password: string, address = "192.0.2.1"): Promise<string> {
  return faultIn(assertStrong(password, email, address));
}

async function faultIn(work: Promise<unknown>): Promise<string> {
  const fault: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return fault === undefined ? "" : JSON.stringify(fault, Object.getOwnPropertyNames(fault));
}

test.each([
  ["qwertyuiop", "most common"],
  ["Password123", "common"],
  ["aaaaaaaaaaaaaaaa", "is a repetition"],
  ["abcdefghijklmn", "sequence"],
  [email, "similar to your e-mail address"],
  ["lovelace2026", "easily guessed"],
  ["pilothouse1", "easily guessed"],
])("refuses %s with the reason", async (password, reason) => {
  const fault = await faultOf(password);
  expect(fault).toContain("validation-failed");
  expect(fault).toContain(reason);
});

test.each(["correct horse battery staple", "x7#Kq!2mWz", "vier Räder und eine ruhige Hand"])(
  "accepts %s",
  async (password) => expect(await faultOf(password)).toBe(""),
);

test("checks only the first 64 characters", async () => {
  const tail = "x7#Kq!2mWz and then a tail of many uncommon words";
  expect(await faultOf("a".repeat(54) + tail)).toBe("");
  expect(await faultOf("a".repeat(64) + tail)).toContain("validation-failed");
});

test("does not block the event loop", async () => {
  let [turns, isDone] = [0, false];
  const judged = faultOf("p@ssw0rd1q2w3e4r5t6y7u8i9o0p4ssw0rdqwertyuiopasdfghjklzxcvbnm123").finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await new Promise(setImmediate);
    turns += 1;
  }
  expect(await judged).toBe("");
  expect(turns).toBeGreaterThan(50);
});

test("a hash has the cost of OWASP's minimum unless another is given", async () => {
  const hashOf = (own: Passwords): Promise<string> => own.hash("x7#Kq!2mWz", "192.0.2.1");
  expect(await hashOf(createPasswords(new Registry()))).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(await hashOf(createPasswords(new Registry(), cheapPasswords))).toContain("$m=64,t=1,p=1$");
});

/** Runs a function many times at once for each address, and counts its outcomes. */
async function runAtOnce(work: (address: string) => Promise<unknown>, addresses: readonly string[], times: number) {
  const faults = await Promise.all(
    addresses.flatMap((address) => Array.from({ length: times }, () => faultIn(work(address)))),
  );
  const refused = faults.filter((fault) => fault.includes("rate-limited")).length;
  return { done: faults.filter((fault) => fault === "").length, refused };
}

const addresses = (count: number): string[] => Array.from({ length: count }, (_, index) => `198.51.100.${index}`);

describe("the queue of password checks", () => {
  const estimate = (address: string): Promise<unknown> => assertStrong("x7#Kq!2mWz", email, address);

  test("admits 100 in total", async () => {
    expect(await runAtOnce(estimate, addresses(6), 18)).toEqual({ done: 100, refused: 8 });
  });

  test("admits 20 per address, and serves other addresses", async () => {
    const [flood, other] = [runAtOnce(estimate, ["192.0.2.1"], 130), runAtOnce(estimate, ["192.0.2.2"], 1)];
    expect(await flood).toEqual({ done: 20, refused: 110 });
    expect(await other).toEqual({ done: 1, refused: 0 });
  });

  test("counts a /64 of IPv6 as one address", async () => {
    expect(await runAtOnce(estimate, ["2001:db8::1", "2001:db8::2"], 15)).toEqual({ done: 20, refused: 10 });
  });
});

describe.each([
  ["hashed", (address: string) => hash("x7#Kq!2mWz", address)],
  ["compared", (address: string) => verify(undefined, "x7#Kq!2mWz", address)],
])("the queue of passwords to be %s", (_, work) => {
  // In addition to those that wait, 4 run.
  test("admits 250 in total", async () => {
    expect(await runAtOnce(work, addresses(6), 45)).toEqual({ done: 254, refused: 16 });
  });

  test("admits 50 per address, and serves other addresses", async () => {
    const [flood, other] = [runAtOnce(work, ["192.0.2.1"], 300), runAtOnce(work, ["192.0.2.2"], 1)];
    expect(await flood).toEqual({ done: 54, refused: 246 });
    expect(await other).toEqual({ done: 1, refused: 0 });
  });
});
