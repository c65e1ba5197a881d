import type { SecretVariable } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { Failure, failFields, restoreFailure } from "../../src/platform/errors.ts";
import { oneTimeCode } from "../../src/platform/one-time-code.ts";
import { withoutLookahead } from "../injected/plain-text.ts";
import { normalizeText } from "./normalized-text.ts";
import type { SecretText } from "./text-automaton.ts";
import { TextMask } from "./text-mask.ts";

/** Minimum length of a masked value. Shorter values also occur in texts by chance. */
const shortest = 4;
/** Maximum length of a value that is also masked in URL-encoded form. */
const longestInAddress = 256;

/**
 * Minimum length of a value that is also masked when split, reversed or encoded. Shorter values would mask ordinary
 * text such as prices and dates.
 */
const shortestNormalized = 8;
/** Maximum length of a value that is also masked as hex and base64, which take 9 times the memory of the value. */
const longestEncoded = 1_024;

/** Maximum number of masked values, enough for one agent session and some earlier sessions. */
const maxValues = 128;

/** Maximum number of TOTP codes that are masked: the last codes that were typed. */
const maxCodes = 8;

/** Names of message fields that never contain page text. */
const machineNames = /^\$|^(?:id|case|type|kind|slug|status|answer|opened)$|_id$|Id$/;

const placeholderOf = (name: string): string => `{{${name}}}`;

/** Secrets that an action may type, and the mask for output. */
export interface VariableUse {
  readonly variables: readonly SecretVariable[];
  /**
   * Returns the current TOTP code of a seed, and masks the code from now on. Throws `validation-failed` if the variable
   * is not a TOTP seed.
   */
  codeOf(variable: SecretVariable): string;
  /** Returns the mask for output texts. Undefined while the session knows no secrets. */
  textMask(): TextMask | undefined;
}

/**
 * Keeps the last `maxValues` secrets that a session has received, and masks the secrets in the session's output.
 * Secrets shorter than `shortest` are ignored.
 */
export class VariableStore {
  /** Variable names by value. */
  readonly #names = new Map<string, string>();
  readonly #codes: SecretText[] = [];
  #mask: TextMask | undefined;

  add(variables: readonly SecretVariable[]): void {
    for (const { name, value } of variables) {
      if (value.length < shortest) continue;
      if (!this.#names.delete(value)) this.#mask = undefined;
      this.#names.set(value, name);
    }
    for (const oldest of this.#names.keys()) {
      if (this.#names.size <= maxValues) break;
      this.#names.delete(oldest);
    }
  }

  /** Returns what a command uses: its own secrets, and the mask of the session. */
  use(variables: readonly SecretVariable[]): VariableUse {
    return {
      variables,
      codeOf: ({ name, value }) => {
        const code = oneTimeCode(value, Date.now());
        if (code === undefined) throw failFields("validation-failed", { "action.text": `${name} is not a TOTP seed` });
        this.#addCode({ text: code, replacement: placeholderOf(`${name}.totp`) });
        return code;
      },
      textMask: () => this.#textMask(),
    };
  }

  /**
   * Replaces secrets by their placeholders in a message, except in fields that never contain page text. Removes the
   * lookahead of cut texts. Changes the message in place.
   */
  mask<Message extends object>(message: Message): Message {
    maskMembers(this.#textMask() ?? noMask, message);
    return message;
  }

  /** Returns a copy of a failure, masked as by `mask`. Returns other thrown values unchanged. */
  maskFailure(thrown: unknown): unknown {
    if (!(thrown instanceof Failure)) return thrown;
    const { slug, extensions, detail, errors, retryAfter, cause } = thrown;
    const masked = this.mask({ extensions: { ...extensions }, detail, errors: errors.map((each) => ({ ...each })) });
    return restoreFailure(slug, masked.extensions, {
      errors: masked.errors,
      cause,
      ...(masked.detail !== undefined && { detail: masked.detail }),
      ...(retryAfter !== undefined && { retryAfter }),
    });
  }

  get #isEmpty(): boolean {
    return this.#names.size === 0 && this.#codes.length === 0;
  }

  #textMask(): TextMask | undefined {
    if (this.#isEmpty) return undefined;
    const names = [...this.#names];
    this.#mask ??= new TextMask([...names.flatMap(secretTextsOf), ...this.#codes], names.flatMap(normalizedSecretsOf));
    return this.#mask;
  }

  #addCode(secret: SecretText): void {
    if (this.#codes.some(({ text }) => text === secret.text)) return;
    this.#codes.push(secret);
    if (this.#codes.length > maxCodes) this.#codes.shift();
    this.#mask = undefined;
  }
}

/** Mask of a session without secrets, which only removes lookahead. */
const noMask: Pick<TextMask, "apply"> = { apply: withoutLookahead };

/** Masks in place: a copy would lose members that messages inherit from their prototypes. */
function maskMembers(mask: Pick<TextMask, "apply">, holder: object): void {
  for (const [name, value] of Object.entries(holder)) {
    if (machineNames.test(name) || value instanceof Uint8Array) continue;
    if (typeof value === "string") Reflect.set(holder, name, mask.apply(value, name === "snapshot"));
    else if (typeof value === "object" && value !== null) maskMembers(mask, value);
  }
}

/** Returns the forms of a value: plain, with normalized white space, URL-encoded and JSON-quoted. */
function secretTextsOf([value, name]: [value: string, name: string]): SecretText[] {
  const plain = [value, value.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim()];
  const inAddress =
    value.length > longestInAddress
      ? []
      : [encodeURIComponent(value), encodeURI(value), new URLSearchParams({ "": value }).toString().slice(1)];
  const quoted = plain.map((text) => JSON.stringify(text).slice(1, -1));
  const forms = new Set([...plain, ...inAddress, ...quoted]);
  return [...forms]
    .filter(({ length }) => length >= shortest)
    .map((text) => ({ text, replacement: placeholderOf(name) }));
}

/** Returns the forms of a value, each normalized: plain, reversed, and in hex, base64 and base64url. */
function normalizedSecretsOf([value, name]: [value: string, name: string]): SecretText[] {
  if (value.length < shortestNormalized) return [];
  const { text } = normalizeText(value);
  const reversed = [...text].reverse().join("");
  const forms = new Set([text, reversed, ...(value.length > longestEncoded ? [] : encodedForms(value))]);
  return [...forms]
    .filter(({ length }) => length >= shortestNormalized)
    .map((form) => ({ text: form, replacement: placeholderOf(name) }));
}

/** Returns hex, and base64 at each of the three positions that a value may have within encoded data. */
function encodedForms(value: string): string[] {
  const bytes = Buffer.from(value);
  const shifted = [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64url");
    const isWhole = (shift + bytes.length) % 3 === 0;
    // The characters at both ends also depend on the neighbouring bytes.
    return encoded.slice(Math.ceil((8 * shift) / 6), isWhole ? undefined : -1);
  });
  const base64 = shifted.flatMap((each) => [each, each.replaceAll("-", "+").replaceAll("_", "/")]);
  return [bytes.toString("hex"), ...base64].map((form) => normalizeText(form).text);
}
