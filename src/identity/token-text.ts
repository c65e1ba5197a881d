import { crc32 } from "node:zlib";
import type { BearerToken } from "../kernel/bearer-kind.ts";
import { idCharacters, randomText, toBase32 } from "../platform/ids.ts";

/** Characters of a secret, with 5 random bits each. */
const secretLength = 40;

/** Characters of a 32-bit checksum, with 5 bits each. */
const checksumLength = 7;

const letters = "[0-9a-hjkmnp-tv-z]";

/** Text format of one kind of token. */
export interface TokenText {
  readonly prefix: string;
  newSecret(): string;
  /** Formats a token: `<prefix><id>_<secret><checksum>`. */
  write(token: BearerToken): string;
  /** Parses a token. Returns undefined if malformed. */
  parse(text: string): BearerToken | undefined;
}

/** Returns the checksum, by which scanners for leaked secrets distinguish tokens from similar strings. */
const checksumOf = (text: string): string => toBase32(BigInt(crc32(text)), checksumLength);

/**
 * Creates the format of tokens that start with `prefix` and refer to rows with ids `<idPrefix>_<id>`. Tokens without a
 * checksum are accepted too.
 */
export function tokenText(prefix: string, idPrefix: string): TokenText {
  const token = new RegExp(
    `^(${prefix}(${idCharacters})_(${letters}{${secretLength}}))(${letters}{${checksumLength}})?$`,
  );
  return {
    prefix,
    newSecret: () => randomText(secretLength),
    write({ id, secret }) {
      const text = `${prefix}${id.slice(idPrefix.length + 1)}_${secret}`;
      return text + checksumOf(text);
    },
    parse(text) {
      const [, checked, id, secret, checksum] = token.exec(text) ?? [];
      if (checked === undefined || id === undefined || secret === undefined) return undefined;
      if (checksum !== undefined && checksum !== checksumOf(checked)) return undefined;
      return { id: `${idPrefix}_${id}`, secret };
    },
  };
}
