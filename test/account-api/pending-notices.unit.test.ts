import { expect, test } from "vitest";
import { PendingNotices } from "../../src/account-api/pending-notices.ts";
import type { ResourceChange } from "../../src/kernel/account-change.ts";

const session = (id: number, change: ResourceChange["change"] = "changed"): ResourceChange => ({
  accountId: "acc_1",
  resource: "session",
  id: `ses_${id}`,
  change,
});

/** Returns the waiting notices. */
async function take(notices: PendingNotices, count: number): Promise<(ResourceChange | "resync")[]> {
  const taken: (ResourceChange | "resync")[] = [];
  for await (const notice of notices) {
    taken.push(notice);
    if (taken.length === count) break;
  }
  return taken;
}

test("begins with resync, which covers the changes before it is read", async () => {
  const notices = new PendingNotices();
  notices.add(session(1));
  const [first] = await take(notices, 1);
  expect(first).toBe("resync");
  notices.add(session(2));
  expect(await take(notices, 1)).toEqual([session(2)]);
});

test("joins the changes of a resource, and keeps that a resource is new", async () => {
  const notices = new PendingNotices();
  await take(notices, 1);
  for (const change of ["created", "changed"] as const) notices.add(session(1, change));
  for (const change of ["changed", "gone"] as const) notices.add(session(2, change));
  expect(await take(notices, 2)).toEqual([session(1, "created"), session(2, "gone")]);
});

test("replaces more than 1,000 changes by resync", async () => {
  const notices = new PendingNotices();
  await take(notices, 1);
  for (let id = 1; id <= 1_000; id += 1) notices.add(session(id));
  expect(await take(notices, 1)).toEqual([session(1)]);
  for (const id of [1, 1_001]) notices.add(session(id));
  expect(await take(notices, 1)).toEqual(["resync"]);
});

test("ends its reader, with the error if there is one", async () => {
  const [ended, failed] = [new PendingNotices(), new PendingNotices()];
  ended.end();
  expect(await take(ended, 1)).toEqual([]);
  failed.fail(new Error("lost"));
  await expect(take(failed, 1)).rejects.toThrow("lost");
});
