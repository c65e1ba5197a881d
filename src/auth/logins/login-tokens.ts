import { hkdfSync } from "node:crypto";
import { tokenText } from "../../identity/token-text.ts";
import { base32Text } from "../../platform/ids.ts";

const accessText = tokenText("pha_", "tok");
const refreshText = tokenText("phr_", "tok");

/** With what every access token begins. */
export const accessPrefix = accessText.prefix;

/** Reads an access token, `pha_<id>_<secret>`; undefined when it is none. */
export const parseAccessToken = accessText.parse;

/** Reads a refresh token, `phr_<id>_<secret>`; undefined when it is none. */
export const parseRefreshToken = refreshText.parse;

/** The secrets of a pair of tokens. */
export interface PairSecrets {
  readonly access: string;
  readonly refresh: string;
}

/** Writes the tokens of a pair. */
export function writePair(id: string, { access, refresh }: PairSecrets): PairSecrets {
  return { access: accessText.write({ id, secret: access }), refresh: refreshText.write({ id, secret: refresh }) };
}

/** Makes the secrets of the first pair of a login. */
export function newSecrets(): PairSecrets {
  return { access: accessText.newSecret(), refresh: refreshText.newSecret() };
}

/**
 * Makes the secrets of the pair that follows one: the same ones from the same spent token and seed, so that a client that
 * lost the answer gets it again. The seed is kept here and the token there: neither is enough alone.
 */
export function nextSecrets(spent: string, seed: Uint8Array): PairSecrets {
  const derive = (what: string): string => base32Text(new Uint8Array(hkdfSync("sha256", spent, seed, what, 40)));
  return { access: derive("access"), refresh: derive("refresh") };
}
