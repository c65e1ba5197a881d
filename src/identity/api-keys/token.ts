import { tokenText } from "../token-text.ts";

const keyText = tokenText("phk_", "key");

export const keyPrefix = keyText.prefix;

export const newKeySecret = keyText.newSecret;

/** Formats a key: `phk_<id>_<secret>`. */
export const writeToken = keyText.write;

/** Parses a key. Returns undefined if malformed. */
export const parseToken = keyText.parse;
