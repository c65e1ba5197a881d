import { tokenText } from "../token-text.ts";

const keyText = tokenText("phk_", "key");

/** With what every key begins. */
export const keyPrefix = keyText.prefix;

/** Makes the secret of a new key. */
export const newSecret = keyText.newSecret;

/** Writes a key: `phk_<id>_<secret>`. */
export const writeToken = keyText.write;

/** Reads a key; undefined when it is none. */
export const parseToken = keyText.parse;
