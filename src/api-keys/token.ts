import { fail } from "../platform/errors.ts";
import { idCharacters, randomText } from "../platform/ids.ts";

/** Five bits a character: 200 random bits. */
const secretLength = 40;

const bearer = /^Bearer +(\S+) *$/i;
const token = new RegExp(`^phk_(${idCharacters})_([0-9a-hjkmnp-tv-z]{${secretLength}})$`);

/** An API key as its holder has it. */
export interface KeyToken {
  /** Identifier of its row, `key_...`. */
  readonly keyId: string;
  readonly secret: string;
}

/** Makes the secret of a new key. */
export function newSecret(): string {
  return randomText(secretLength);
}

/** Writes a key: `phk_<id>_<secret>`. */
export function writeToken({ keyId, secret }: KeyToken): string {
  return `phk_${keyId.slice("key_".length)}_${secret}`;
}

/** Reads a key; undefined when it is none. */
export function parseToken(text: string): KeyToken | undefined {
  const [, id, secret] = token.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { keyId: `key_${id}`, secret };
}

/** Reads an Authorization header. Throws `unauthorized` when it has no bearer, `invalid-key` when that is no key. */
export function parseAuthorization(header: string | undefined): KeyToken {
  const [, text] = bearer.exec(header ?? "") ?? [];
  if (text === undefined) throw fail("unauthorized", {}, { detail: "send the header Authorization: Bearer <API key>" });
  const parsed = parseToken(text);
  if (!parsed) throw fail("invalid-key", {}, { detail: "the bearer is not an API key of this service" });
  return parsed;
}
