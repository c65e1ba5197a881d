import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { Failure, fail } from "../errors.ts";
import { ensureSecretsFile, type SecretsKey } from "./secrets-keys.ts";

/** Owner and purpose of a secret. A sealed secret opens only with the same context. */
export interface SecretContext {
  readonly accountId: string;
  readonly purpose: string;
}

/** Key of a secret that is sealed in parts. Parts cannot be omitted, repeated or reordered. */
export interface DataKey {
  /** Seals a part. Each index must be used once. */
  sealPart(index: number, isLast: boolean, data: Uint8Array): Buffer;
  /** Opens a part. Throws if the part was changed, or was not sealed at this position. */
  openPart(index: number, isLast: boolean, sealed: Uint8Array): Buffer;
}

/**
 * Seals secrets at rest with AES-256-GCM. Each secret has its own data key, sealed with a key of SECRETS_KEYS, so that
 * rotation only reseals data keys.
 */
export interface Sealer {
  start(): Promise<void>;
  stop(): void;
  seal(plain: Uint8Array, context: SecretContext): Buffer;
  /**
   * Throws `internal` (see `isKeyLost`) if the key of the secret is missing or does not open the data key, and an Error
   * if the secret was changed.
   */
  open(sealed: Uint8Array, context: SecretContext): Buffer;
  /** Creates a data key for a secret in parts, and its sealed form to store. */
  makeDataKey(context: SecretContext): { readonly dataKey: DataKey; readonly sealed: Buffer };
  openDataKey(sealed: Uint8Array, context: SecretContext): DataKey;
  /** Creates one data key for each key of SECRETS_KEYS and seals it with that key. Returns them by the sealing key's id. */
  sealByEach(context: SecretContext): ReadonlyMap<string, Buffer>;
  /** Reseals a secret or data key with the newest key. Returns undefined if the newest key already seals it. */
  rewrap(sealed: Uint8Array, context: SecretContext): Buffer | undefined;
}

/** Source of keys: the configuration, else a file. */
export interface SealerOptions {
  readonly keys: readonly SecretsKey[];
  readonly file: string | undefined;
}

/** A key of SECRETS_KEYS. Creating a cipher from a key object is four times faster than from bytes. */
interface SealingKey {
  readonly id: string;
  readonly secret: KeyObject;
}

const toSealingKey = ({ id, secret }: SecretsKey): SealingKey => ({ id, secret: createSecretKey(secret) });

const cipher = "aes-256-gcm";
const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;

/** Returns the length of a sealed data key: format, id length, id, nonce, sealed key, tag. */
const headerBytes = (idBytes: number): number => 2 + idBytes + nonceBytes + keyBytes + tagBytes;

function encrypt(key: Buffer | KeyObject, nonce: Buffer, plain: Uint8Array, associated: Buffer): Buffer {
  const stream = createCipheriv(cipher, key, nonce).setAAD(associated);
  return Buffer.concat([stream.update(plain), stream.final(), stream.getAuthTag()]);
}

function decrypt(key: Buffer | KeyObject, nonce: Uint8Array, sealed: Uint8Array, associated: Buffer): Buffer {
  const end = sealed.length - tagBytes;
  if (end < 0) throw new Error("the sealed secret is truncated");
  const options = { authTagLength: tagBytes };
  const stream = createDecipheriv(cipher, key, nonce, options).setAAD(associated).setAuthTag(sealed.subarray(end));
  return Buffer.concat([stream.update(sealed.subarray(0, end)), stream.final()]);
}

/** Cause of a failure if SECRETS_KEYS lacks the key of a secret, or has another key with its id. */
class KeyLost extends Error {}

function keyLost(message: string, cause?: unknown): Failure {
  const detail = "encrypted data cannot be read: the operator of the service must restore its SECRETS_KEYS";
  return fail("internal", {}, { detail, cause: new KeyLost(message, { cause }) });
}

/** Returns whether a secret could not be opened because SECRETS_KEYS lacks its key or has another key with its id. */
export function isKeyLost(thrown: unknown): boolean {
  return thrown instanceof Failure && thrown.cause instanceof KeyLost;
}

/** Encoded as JSON, so that different contexts never have equal encodings. */
function associatedData(keyId: string, { accountId, purpose }: SecretContext): Buffer {
  return Buffer.from(JSON.stringify([keyId, accountId, purpose]));
}

/** Each data key is used for one secret only, so part numbers suffice as nonces. */
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

function wrap({ id, secret }: SealingKey, key: Buffer, context: SecretContext): Buffer {
  const name = Buffer.from(id);
  const nonce = randomBytes(nonceBytes);
  const head = Buffer.from([format, name.length]);
  return Buffer.concat([head, name, nonce, encrypt(secret, nonce, key, associatedData(id, context))]);
}

/** Opens a sealed data key. Also returns its length in bytes. */
function unwrap(keys: readonly SealingKey[], sealed: Buffer, context: SecretContext) {
  const idBytes = sealed[1] ?? 0;
  const length = headerBytes(idBytes);
  if (sealed[0] !== format || sealed.length < length)
    throw new Error("expected a sealed secret, got an unknown format");
  const keyId = sealed.subarray(2, 2 + idBytes).toString();
  const found = keys.find(({ id }) => id === keyId);
  if (!found) throw keyLost(`SECRETS_KEYS lacks the key ${keyId} of a stored secret`);
  const nonce = sealed.subarray(2 + idBytes, 2 + idBytes + nonceBytes);
  const wrapped = sealed.subarray(2 + idBytes + nonceBytes, length);
  try {
    return { keyId, length, key: decrypt(found.secret, nonce, wrapped, associatedData(keyId, context)) };
  } catch (error) {
    throw keyLost(`the key ${keyId} of SECRETS_KEYS does not decrypt a stored secret of that key`, error);
  }
}

/** Creates the sealer. Keys from a file are available after `start`. */
export function createSealer({ keys: given, file }: SealerOptions): Sealer {
  let keys = given.map(toSealingKey);

  function newest(): SealingKey {
    const [key] = keys;
    if (!key) throw new Error("the sealer has no key before its start");
    return key;
  }

  function make(context: SecretContext) {
    const key = randomBytes(keyBytes);
    return { dataKey: toDataKey(key, context), sealed: wrap(newest(), key, context) };
  }

  return {
    async start() {
      if (keys.length === 0 && file !== undefined) keys = (await ensureSecretsFile(file)).map(toSealingKey);
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
    sealByEach: (context) => new Map(keys.map((key) => [key.id, wrap(key, randomBytes(keyBytes), context)])),
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
