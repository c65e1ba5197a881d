import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { ensureSecretsFile, type SecretsKey } from "./secrets-keys.ts";

/** Whose secret it is and what for: what was sealed for one opens for no other. */
export interface SecretContext {
  readonly accountId: string;
  readonly purpose: string;
}

/** A key of its own for one secret, which may come in parts: none can be left out, repeated or put elsewhere. */
export interface DataKey {
  /** Seals a part; each index is used once. */
  sealPart(index: number, isLast: boolean, data: Uint8Array): Buffer;
  /** Opens a part; throws when it is not what was sealed there. */
  openPart(index: number, isLast: boolean, sealed: Uint8Array): Buffer;
}

/**
 * Seals what is kept secret at rest, by AES-256-GCM: each secret by a key of its own, which a key of SECRETS_KEYS seals.
 * So that keys can be rotated by sealing the small keys anew.
 */
export interface Sealer {
  /** Reads the keys. */
  start(): Promise<void>;
  stop(): void;
  seal(plain: Uint8Array, context: SecretContext): Buffer;
  open(sealed: Uint8Array, context: SecretContext): Buffer;
  /** Makes the key of a secret that comes in parts, and what to keep of it. */
  makeDataKey(context: SecretContext): { readonly dataKey: DataKey; readonly sealed: Buffer };
  openDataKey(sealed: Uint8Array, context: SecretContext): DataKey;
  /** Seals a sealed secret, or a sealed data key, by the newest key; undefined when it is already. */
  rewrap(sealed: Uint8Array, context: SecretContext): Buffer | undefined;
}

/** Where the keys come from: those of the configuration, else those of a file. */
export interface SealerOptions {
  readonly keys: readonly SecretsKey[];
  readonly file: string | undefined;
}

const cipher = "aes-256-gcm";
const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;

/** A data key as it is kept: format, length of the key's id, the id, nonce, sealed key, tag. */
const headerBytes = (idBytes: number): number => 2 + idBytes + nonceBytes + keyBytes + tagBytes;

function encrypt(key: Buffer, nonce: Buffer, plain: Uint8Array, associated: Buffer): Buffer {
  const stream = createCipheriv(cipher, key, nonce).setAAD(associated);
  return Buffer.concat([stream.update(plain), stream.final(), stream.getAuthTag()]);
}

function decrypt(key: Buffer, nonce: Uint8Array, sealed: Uint8Array, associated: Buffer): Buffer {
  const end = sealed.length - tagBytes;
  if (end < 0) throw new Error("a sealed secret is cut short");
  const options = { authTagLength: tagBytes };
  const stream = createDecipheriv(cipher, key, nonce, options).setAAD(associated).setAuthTag(sealed.subarray(end));
  return Buffer.concat([stream.update(sealed.subarray(0, end)), stream.final()]);
}

/** JSON, so that no two contexts read alike. */
function associatedData(keyId: string, { accountId, purpose }: SecretContext): Buffer {
  return Buffer.from(JSON.stringify([keyId, accountId, purpose]));
}

/** The key of one secret is used for its parts only, so their numbers are nonces enough. */
function partNonce(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(nonceBytes);
  nonce.writeUInt8(isLast ? 1 : 0, 0);
  nonce.writeUInt32BE(index, nonceBytes - 4);
  return nonce;
}

function toDataKey(key: Buffer, context: SecretContext): DataKey {
  const associated = associatedData("", context);
  return {
    sealPart: (index, isLast, data) => encrypt(key, partNonce(index, isLast), data, associated),
    openPart: (index, isLast, sealed) => decrypt(key, partNonce(index, isLast), sealed, associated),
  };
}

function wrap({ id, secret }: SecretsKey, key: Buffer, context: SecretContext): Buffer {
  const name = Buffer.from(id);
  const nonce = randomBytes(nonceBytes);
  const head = Buffer.from([format, name.length]);
  return Buffer.concat([head, name, nonce, encrypt(secret, nonce, key, associatedData(id, context))]);
}

/** Reads a data key as it is kept, and how many bytes that takes. */
function unwrap(keys: readonly SecretsKey[], sealed: Buffer, context: SecretContext) {
  const idBytes = sealed[1] ?? 0;
  const length = headerBytes(idBytes);
  if (sealed[0] !== format || sealed.length < length) throw new Error("not a sealed secret of a format that is known");
  const keyId = sealed.subarray(2, 2 + idBytes).toString();
  const found = keys.find(({ id }) => id === keyId);
  if (!found) throw new Error(`SECRETS_KEYS lacks the key ${keyId}, by which a secret was sealed`);
  const nonce = sealed.subarray(2 + idBytes, 2 + idBytes + nonceBytes);
  const wrapped = sealed.subarray(2 + idBytes + nonceBytes, length);
  return { keyId, length, key: decrypt(found.secret, nonce, wrapped, associatedData(keyId, context)) };
}

/** Makes the sealer; its keys are there once it has started. */
export function createSealer({ keys: given, file }: SealerOptions): Sealer {
  let keys = given;

  function newest(): SecretsKey {
    const [key] = keys;
    if (!key) throw new Error("there is no key to seal by before the start");
    return key;
  }

  function make(context: SecretContext) {
    const key = randomBytes(keyBytes);
    return { dataKey: toDataKey(key, context), sealed: wrap(newest(), key, context) };
  }

  return {
    async start() {
      if (keys.length === 0 && file !== undefined) keys = await ensureSecretsFile(file);
    },
    stop: () => undefined,
    seal(plain, context) {
      const { dataKey, sealed } = make(context);
      return Buffer.concat([sealed, dataKey.sealPart(0, true, plain)]);
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed);
      const { key, length } = unwrap(keys, bytes, context);
      return toDataKey(key, context).openPart(0, true, bytes.subarray(length));
    },
    makeDataKey: make,
    openDataKey: (sealed, context) => toDataKey(unwrap(keys, Buffer.from(sealed), context).key, context),
    rewrap(sealed, context) {
      const bytes = Buffer.from(sealed);
      const { keyId, key, length } = unwrap(keys, bytes, context);
      const target = newest();
      if (keyId === target.id) return undefined;
      return Buffer.concat([wrap(target, key, context), bytes.subarray(length)]);
    },
  };
}
