import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createPasswords } from "../../src/passwords/passwords.ts";

const { assertStrong } = createPasswords(new Registry());
const email = "ada.lovelace@example.com";

/** What is said of a password; empty for a strong one. */
async function faultOf(password: string): Promise<string> {
  const fault: unknown = await assertStrong(password, email).catch((thrown: unknown) => thrown);
  return fault === undefined ? "" : JSON.stringify(fault, Object.getOwnPropertyNames(fault));
}

test.each([
  ["qwertyuiop", "most common"],
  ["Password123", "common"],
  ["aaaaaaaaaaaaaaaa", "repeats itself"],
  ["abcdefghijklmn", "sequence"],
  [email, "like your e-mail address"],
  ["lovelace2026", "easily guessed"],
  ["pilothouse1", "easily guessed"],
])("refuses %s, and says why", async (password, reason) => {
  const fault = await faultOf(password);
  expect(fault).toContain("validation-failed");
  expect(fault).toContain(reason);
});

test.each(["correct horse battery staple", "x7#Kq!2mWz", "vier Räder und eine ruhige Hand"])(
  "takes %s",
  async (password) => expect(await faultOf(password)).toBe(""),
);

test("judges the first 64 characters alone", async () => {
  const tail = "x7#Kq!2mWz and then a tail of many uncommon words";
  expect(await faultOf("a".repeat(54) + tail)).toBe("");
  expect(await faultOf("a".repeat(64) + tail)).toContain("validation-failed");
});

test("judges while the event loop goes on", async () => {
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

test("takes no more at once than it can judge soon", async () => {
  const faults = await Promise.all(Array.from({ length: 130 }, () => faultOf("x7#Kq!2mWz")));
  expect(faults.filter((fault) => fault === "")).toHaveLength(100);
  expect(faults.filter((fault) => fault.includes("rate-limited"))).toHaveLength(30);
});
