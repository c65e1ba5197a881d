import { hkdfSync } from "node:crypto";
import { tokenText } from "../../identity/token-text.ts";
import { base32Text } from "../../platform/ids.ts";

const accessText = tokenText("pha_", "tok");
const refreshText = tokenText("phr_", "tok");

export const accessPrefix = accessText.prefix;

/** Parses an access token, `pha_<id>_<secret>`; undefined if the text is invalid. */
export const parseAccessToken = accessText.parse;

/** Parses a refresh token, `phr_<id>_<secret>`; undefined if the text is invalid. */
export const parseRefreshToken = refreshText.parse;

export interface PairSecrets {
  readonly access: string;
  readonly refresh: string;
}

export function writePair(id: string, { access, refresh }: PairSecrets): PairSecrets {
  return { access: accessText.write({ id, secret: access }), refresh: refreshText.write({ id, secret: refresh }) };
}

/** Creates the secrets of the first pair of a login. */
export function newSecrets(): PairSecrets {
  return { access: accessText.newSecret(), refresh: refreshText.newSecret() };
}

/**
 * Derives the secrets of the next pair from the secret of the spent refresh token and a seed, so that a client can
 * repeat a request whose response was lost. The service stores only the seed, and the client only the token.
 */
export function nextSecrets(spent: string, seed: Uint8Array): PairSecrets {
  const derive = (what: string): string => base32Text(new Uint8Array(hkdfSync("sha256", spent, seed, what, 40)));
  return { access: derive("access"), refresh: derive("refresh") };
}
