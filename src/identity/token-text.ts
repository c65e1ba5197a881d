import { crc32 } from "node:zlib";
import type { BearerToken } from "../kernel/bearer-kind.ts";
import { idCharacters, randomText, toBase32 } from "../platform/ids.ts";

/** Five bits a character: 200 random bits. */
const secretLength = 40;

/** Five bits a character: the 32 bits of a checksum. */
const checksumLength = 7;

const letters = "[0-9a-hjkmnp-tv-z]";

/** How the tokens of one kind are written. */
export interface TokenText {
  /** With what each begins. */
  readonly prefix: string;
  /** Makes the secret of a new one. */
  newSecret(): string;
  /** Writes one: `<prefix><id>_<secret><checksum>`. */
  write(token: BearerToken): string;
  /** Reads one; undefined when it is none. */
  parse(text: string): BearerToken | undefined;
}

/** By it those who look for leaked tokens tell one from a text that resembles it. */
const checksumOf = (text: string): string => toBase32(BigInt(crc32(text)), checksumLength);

/**
 * Makes what writes and reads the tokens that begin with `prefix`, whose rows have identifiers with `idPrefix`. Those that
 * were made before there were checksums have none.
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
