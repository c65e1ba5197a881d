import type { BearerToken } from "../identity/bearer-kind.ts";
import { idCharacters, randomText } from "../platform/ids.ts";

/** Five bits a character: 200 random bits. */
const secretLength = 40;

/** With what every key begins. */
export const keyPrefix = "phk_";

const token = new RegExp(`^${keyPrefix}(${idCharacters})_([0-9a-hjkmnp-tv-z]{${secretLength}})$`);

/** Makes the secret of a new key. */
export function newSecret(): string {
  return randomText(secretLength);
}

/** Writes a key: `phk_<id>_<secret>`. */
export function writeToken({ id, secret }: BearerToken): string {
  return `${keyPrefix}${id.slice("key_".length)}_${secret}`;
}

/** Reads a key; undefined when it is none. */
export function parseToken(text: string): BearerToken | undefined {
  const [, id, secret] = token.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id: `key_${id}`, secret };
}
