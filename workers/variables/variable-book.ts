import type { SecretVariable } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { Failure, failFields, restoreFailure } from "../../src/platform/errors.ts";
import { oneTimeCode } from "../../src/platform/one-time-code.ts";
import { type Cover, TextMask } from "./text-mask.ts";

/** Values that are shorter occur by chance, and are not covered; longer ones are not looked for as addresses write them. */
const shortest = 4;
const longestInAddress = 256;

/** How many values are covered: those of one agent session, and of some before it. */
const mostValues = 128;

/** How many codes are covered: each is good for a minute. */
const mostCodes = 8;

/** What machines read: what it says is no text of a page. */
const machineNames = /^\$|^(?:id|case|type|kind|slug|status|answer|opened)$|_id$|Id$/;

const placeOf = (name: string): string => `{{${name}}}`;

/** What an action may type. */
export interface VariableUse {
  /** The secrets of whoever commands it. */
  readonly variables: readonly SecretVariable[];
  /** The code of a seed, now. */
  codeOf(variable: SecretVariable): string;
  /** What covers secrets in a text that is told; undefined while the session has heard of none. */
  textMask(): TextMask | undefined;
}

/** The secrets that a session has heard of, for as long as it lives: none is in what it tells in words. */
export class VariableBook {
  /** Names by values. */
  readonly #names = new Map<string, string>();
  readonly #codes: Cover[] = [];
  #mask: TextMask | undefined;

  /** Hears what a command may type. */
  learn(variables: readonly SecretVariable[]): void {
    for (const { name, value } of variables) {
      if (value.length < shortest) continue;
      if (!this.#names.delete(value)) this.#mask = undefined;
      this.#names.set(value, name);
    }
    for (const oldest of this.#names.keys()) {
      if (this.#names.size <= mostValues) break;
      this.#names.delete(oldest);
    }
  }

  /** What a command types of them. */
  use(variables: readonly SecretVariable[]): VariableUse {
    return {
      variables,
      codeOf: ({ name, value }) => {
        const code = oneTimeCode(value, Date.now());
        if (code === undefined) throw failFields("validation-failed", { "action.text": `${name} is no TOTP seed` });
        this.#cover({ text: code, shown: placeOf(`${name}.totp`) });
        return code;
      },
      textMask: () => this.#textMask(),
    };
  }

  /** Writes names in place of values into all that a message tells; texts that machines read stay what they are. */
  mask<Message extends object>(message: Message): Message {
    const mask = this.#textMask();
    if (mask) maskMembers(mask, message);
    return message;
  }

  /** The same of a failure. */
  maskFailure(thrown: unknown): unknown {
    if (!(thrown instanceof Failure) || this.#isEmpty) return thrown;
    const { slug, extensions, detail, errors, retryAfter, cause } = thrown;
    const told = this.mask({ extensions: { ...extensions }, detail, errors: errors.map((each) => ({ ...each })) });
    return restoreFailure(slug, told.extensions, {
      ...{ errors: told.errors, cause },
      ...(told.detail !== undefined && { detail: told.detail }),
      ...(retryAfter !== undefined && { retryAfter }),
    });
  }

  get #isEmpty(): boolean {
    return this.#names.size === 0 && this.#codes.length === 0;
  }

  #textMask(): TextMask | undefined {
    if (this.#isEmpty) return undefined;
    this.#mask ??= new TextMask([...[...this.#names].flatMap(coversOf), ...this.#codes]);
    return this.#mask;
  }

  #cover(cover: Cover): void {
    if (this.#codes.some(({ text }) => text === cover.text)) return;
    this.#codes.push(cover);
    if (this.#codes.length > mostCodes) this.#codes.shift();
    this.#mask = undefined;
  }
}

/** In place: what messages have from their prototypes no copy would have. */
function maskMembers(mask: TextMask, holder: object): void {
  for (const [name, value] of Object.entries(holder)) {
    if (machineNames.test(name) || value instanceof Uint8Array) continue;
    if (typeof value === "string") Reflect.set(holder, name, mask.apply(value));
    else if (typeof value === "object" && value !== null) maskMembers(mask, value);
  }
}

/** A value as it is shown, and as addresses and quoted texts write it. */
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
