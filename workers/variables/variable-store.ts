import type { SecretVariable } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { Failure, failFields, restoreFailure } from "../../src/platform/errors.ts";
import { oneTimeCode } from "../../src/platform/one-time-code.ts";
import { withoutMargins } from "../injected/plain-text.ts";
import { bareText } from "./bare-text.ts";
import type { Cover } from "./text-automaton.ts";
import { TextMask } from "./text-mask.ts";

/** Length of the shortest masked values. Shorter values occur by chance. */
const shortest = 4;
/** Length of the longest values that are also masked in URL-encoded form. */
const longestInAddress = 256;

/**
 * Length of the shortest values that are also masked when split, reversed or encoded: shorter values would mask ordinary
 * text such as prices and dates.
 */
const shortestBare = 8;
/** Length of the longest values that are also masked as hex and base64, which need 9 times the memory of the value. */
const longestEncoded = 1_024;

/** Maximum number of masked values, enough for one agent session and some earlier sessions. */
const maxValues = 128;

/** Maximum number of masked TOTP codes. A code is valid for one minute. */
const maxCodes = 8;

/** Names of fields that never contain page text. */
const machineNames = /^\$|^(?:id|case|type|kind|slug|status|answer|opened)$|_id$|Id$/;

const placeOf = (name: string): string => `{{${name}}}`;

/** Secrets available to an action. */
export interface VariableUse {
  readonly variables: readonly SecretVariable[];
  /** Returns the current TOTP code of a seed. */
  codeOf(variable: SecretVariable): string;
  /** Returns the mask for output texts. Undefined while the session knows no secrets. */
  textMask(): TextMask | undefined;
}

/** All secrets that a session has received during its life. Its output texts never contain them. */
export class VariableStore {
  /** Variable names by value. */
  readonly #names = new Map<string, string>();
  readonly #codes: Cover[] = [];
  #mask: TextMask | undefined;

  learn(variables: readonly SecretVariable[]): void {
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

  /** Returns the secrets as a command uses them. */
  use(variables: readonly SecretVariable[]): VariableUse {
    return {
      variables,
      codeOf: ({ name, value }) => {
        const code = oneTimeCode(value, Date.now());
        if (code === undefined) throw failFields("validation-failed", { "action.text": `${name} is not a TOTP seed` });
        this.#cover({ text: code, shown: placeOf(`${name}.totp`) });
        return code;
      },
      textMask: () => this.#textMask(),
    };
  }

  /**
   * Replaces values by names in a message, except in fields that never contain page text, and removes the margins of cut
   * texts.
   */
  mask<Message extends object>(message: Message): Message {
    maskMembers(this.#textMask() ?? noMask, message);
    return message;
  }

  /** Same as `mask` for a failure. */
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
    this.#mask ??= new TextMask([...names.flatMap(coversOf), ...this.#codes], names.flatMap(bareCoversOf));
    return this.#mask;
  }

  #cover(cover: Cover): void {
    if (this.#codes.some(({ text }) => text === cover.text)) return;
    this.#codes.push(cover);
    if (this.#codes.length > maxCodes) this.#codes.shift();
    this.#mask = undefined;
  }
}

/** Mask of a session without secrets. */
const noMask: Pick<TextMask, "apply"> = { apply: withoutMargins };

/** Masks in place: a copy would lose members that messages inherit from their prototypes. */
function maskMembers(mask: Pick<TextMask, "apply">, holder: object): void {
  for (const [name, value] of Object.entries(holder)) {
    if (machineNames.test(name) || value instanceof Uint8Array) continue;
    if (typeof value === "string") Reflect.set(holder, name, mask.apply(value, name === "snapshot"));
    else if (typeof value === "object" && value !== null) maskMembers(mask, value);
  }
}

/** Returns the forms of a value: plain, URL-encoded and JSON-quoted. */
function coversOf([value, name]: [value: string, name: string]): Cover[] {
  const plain = [value, value.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim()];
  const inAddress =
    value.length > longestInAddress
      ? []
      : [encodeURIComponent(value), encodeURI(value), new URLSearchParams({ "": value }).toString().slice(1)];
  const quoted = plain.map((text) => JSON.stringify(text).slice(1, -1));
  const forms = new Set([...plain, ...inAddress, ...quoted]);
  return [...forms].filter(({ length }) => length >= shortest).map((text) => ({ text, shown: placeOf(name) }));
}

/** Returns the forms of a value that `bareText` does not undo: as such, reversed, hex, base64 and base64url. */
function bareCoversOf([value, name]: [value: string, name: string]): Cover[] {
  if (value.length < shortestBare) return [];
  const { text } = bareText(value);
  const reversed = [...text].reverse().join("");
  const forms = new Set([text, reversed, ...(value.length > longestEncoded ? [] : encodedForms(value))]);
  return [...forms]
    .filter(({ length }) => length >= shortestBare)
    .map((form) => ({ text: form, shown: placeOf(name) }));
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
  return [bytes.toString("hex"), ...base64].map((form) => bareText(form).text);
}
