import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseSecretsKeys, type SecretsKey } from "../../src/platform/secrets/secrets-keys.ts";
import { createSealer, isKeyLost, type Sealer } from "../../src/platform/secrets/secrets-sealer.ts";

const key = (id: string): SecretsKey => ({ id, secret: randomBytes(32) });
const sealerOf = (...keys: SecretsKey[]): Sealer => createSealer({ keys, file: undefined });
const context = { accountId: "acc_1", purpose: "test" };
const plain = Buffer.from("a secret");

test("opens a sealed secret only for the same account and purpose", () => {
  const sealer = sealerOf(key("one"));
  const sealed = sealer.seal(plain, context);
  expect(sealed.includes(plain)).toBe(false);
  expect(sealer.open(sealed, context)).toEqual(plain);
  expect(sealer.seal(plain, context)).not.toEqual(sealed);
  for (const other of [{ accountId: "acc_2" }, { purpose: "other" }]) {
    expect(() => sealer.open(sealed, { ...context, ...other })).toThrow();
  }
});

test("rejects a changed or truncated secret", () => {
  const sealer = sealerOf(key("one"));
  const sealed = sealer.seal(plain, context);
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    expect(() => sealer.open(changed, context)).toThrow();
    expect(() => sealer.open(sealed.subarray(0, at), context)).toThrow();
  }
});

test("reseals by the newest key, which makes the old key unnecessary", () => {
  const [old, next] = [key("old"), key("next")];
  const sealed = sealerOf(old).seal(plain, context);
  const both = sealerOf(next, old);
  expect(both.open(sealed, context)).toEqual(plain);
  const rewrapped = both.rewrap(sealed, context);
  expect(rewrapped && sealerOf(next).open(rewrapped, context)).toEqual(plain);
  expect(rewrapped && both.rewrap(rewrapped, context)).toBeUndefined();
  expect(() => sealerOf(next).open(sealed, context)).toThrow("restore its SECRETS_KEYS");
});

test("names a lost or replaced key in the log and not to clients", () => {
  const sealed = sealerOf(key("old")).seal(plain, context);
  for (const [other, message] of [
    [key("next"), "SECRETS_KEYS lacks the key old of a stored secret"],
    [key("old"), "the key old of SECRETS_KEYS does not decrypt a stored secret of that key"],
  ] as const) {
    const failure = catchOf(() => sealerOf(other).open(sealed, context));
    expect(isKeyLost(failure)).toBe(true);
    expect(failure).toMatchObject({ slug: "internal", cause: { message } });
    expect(String(failure)).not.toContain("old");
  }
  expect(isKeyLost(catchOf(() => sealerOf(key("old")).open(Buffer.alloc(9), context)))).toBe(false);
});

function catchOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

test("seals a secret in parts that cannot be omitted, repeated or reordered", () => {
  const sealer = sealerOf(key("one"));
  const { dataKey, sealed } = sealer.makeDataKey(context);
  const parts = ["a", "b", "c"].map((text, index) => dataKey.sealPart(index, index === 2, Buffer.from(text)));
  const opened = sealer.openDataKey(sealed, context);
  expect(parts.map((part, index) => String(opened.openPart(index, index === 2, part)))).toEqual(["a", "b", "c"]);
  const [first = plain, second = plain] = parts;
  expect(() => opened.openPart(0, false, second)).toThrow();
  expect(() => opened.openPart(1, true, second)).toThrow();
  expect(() => sealer.makeDataKey(context).dataKey.openPart(0, false, first)).toThrow();
});

test("creates a key in a file that only its user can read, and finds it again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "sealer-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "secrets-key");
  const first = createSealer({ keys: [], file });
  await first.start();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const again = createSealer({ keys: [], file });
  await again.start();
  expect(again.open(first.seal(plain, context), context)).toEqual(plain);
  expect(parseSecretsKeys(await readFile(file, "utf8"))).toHaveLength(1);
});

test.for(["one", "one:short", `one two:${"A".repeat(43)}=`, `a:${"A".repeat(43)}=,a:${"A".repeat(43)}=`])(
  "rejects the keys %s without repeating them",
  (text) => {
    expect(() => parseSecretsKeys(text)).toThrow(/^SECRETS_KEYS accepts (?!.*AAAA)/);
  },
);
