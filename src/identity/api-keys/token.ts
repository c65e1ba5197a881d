import { tokenText } from "../token-text.ts";

const keyText = tokenText("phk_", "key");

export const keyPrefix = keyText.prefix;

export const newKeySecret = keyText.newSecret;

/** Formats a key: `phk_<id>_<secret>`. */
export const writeToken = keyText.write;

/** Parses a key; undefined if the text is not a key. */
export const parseToken = keyText.parse;
