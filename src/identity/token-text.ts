import { idCharacters, randomText } from "../platform/ids.ts";
import type { BearerToken } from "./bearer-kind.ts";

/** Five bits a character: 200 random bits. */
const secretLength = 40;

/** How the tokens of one kind are written. */
export interface TokenText {
  /** With what each begins. */
  readonly prefix: string;
  /** Makes the secret of a new one. */
  newSecret(): string;
  /** Writes one: `<prefix><id>_<secret>`. */
  write(token: BearerToken): string;
  /** Reads one; undefined when it is none. */
  parse(text: string): BearerToken | undefined;
}

/** Makes what writes and reads the tokens that begin with `prefix`, whose rows have identifiers with `idPrefix`. */
export function tokenText(prefix: string, idPrefix: string): TokenText {
  const token = new RegExp(`^${prefix}(${idCharacters})_([0-9a-hjkmnp-tv-z]{${secretLength}})$`);
  return {
    prefix,
    newSecret: () => randomText(secretLength),
    write: ({ id, secret }) => `${prefix}${id.slice(idPrefix.length + 1)}_${secret}`,
    parse(text) {
      const [, id, secret] = token.exec(text) ?? [];
      return id === undefined || secret === undefined ? undefined : { id: `${idPrefix}_${id}`, secret };
    },
  };
}
