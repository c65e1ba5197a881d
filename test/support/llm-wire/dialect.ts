import type { IncomingHttpHeaders } from "node:http";

/** Answer in a form independent of protocols. */
export interface WireAnswer {
  readonly model: string;
  readonly text?: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly usage: { readonly input: number; readonly output: number; readonly cached: number };
}

/** Refusal in a form independent of protocols. */
export interface WireFault {
  readonly status: number;
  readonly message: string;
  /** Name of the error, if the protocol has one besides the status. */
  readonly code?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of protocols that are not ours.
export type Body = any;

/** API protocol as its provider documents it. */
export interface Dialect {
  readonly name: "anthropic" | "openai" | "chat" | "google";
  readonly wrongKey: WireFault;
  unknownModel(model: string): WireFault;
  keyOf(headers: IncomingHttpHeaders): string;
  modelOf(path: string, body: Body): string;
  isStream(path: string, body: Body): boolean;
  /** Returns the fault of a request, if any. */
  check(body: Body): WireFault | undefined;
  resultsOf(body: Body): string[];
  fault(fault: WireFault): object;
  whole(answer: WireAnswer): object;
  stream(answer: WireAnswer): string[];
  /** Event that ends a started stream with an error. */
  streamFault(fault: WireFault): string;
}

export const data = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
export const bearer = ({ authorization = "" }: IncomingHttpHeaders): string => authorization.replace(/^Bearer /, "");
export const halves = (text: string): string[] => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];
export const partsOf = (content: Body): Body[] => (Array.isArray(content) ? content : []);
export const asText = (value: Body): string => {
  if (Array.isArray(value)) return value.map(({ type, text }) => text ?? `[${type}]`).join("\n");
  return typeof value === "string" ? value : JSON.stringify(value);
};

/** Names of the fields in a type of the official client. */
export const fieldsOf = <T>(...names: readonly (keyof T & string)[]): ReadonlySet<string> => new Set(names);

/** Returns the first field of an object that the protocol does not define. */
export const unknownIn = (object: object, known: ReadonlySet<string> | undefined): string | undefined =>
  Object.keys(object).find((name) => known && !known.has(name));

/** Returns a result without a call, and a call without a result. */
export function unmatched(calls: readonly string[], results: readonly string[]) {
  const result = results.find((id) => !calls.includes(id));
  const call = calls.find((id) => !results.includes(id));
  return { result, call };
}

/** Approximate characters per token of English text. Longer strings without spaces are images. */
const charactersPerToken = 4;
const longestText = 100_000;

/** Approximate number of tokens in a request. */
export function tokensOf(body: Body): number {
  const isPicture = (value: string) => value.length > longestText && !/\s/.test(value.slice(0, longestText));
  const text = JSON.stringify(body, (_, value) => (typeof value === "string" && isPicture(value) ? "" : value));
  return Math.ceil(text.length / charactersPerToken);
}
