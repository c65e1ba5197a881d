import type { IncomingHttpHeaders } from "node:http";

/** An answer, before it is put into a protocol. */
export interface WireAnswer {
  readonly model: string;
  readonly text?: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly usage: { readonly input: number; readonly output: number; readonly cached: number };
}

/** A refusal, before it is put into a protocol. */
export interface WireFault {
  readonly status: number;
  readonly message: string;
  /** What the protocol calls it, where it does so beside its status. */
  readonly code?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of protocols that are not ours.
export type Body = any;

/** A wire protocol, as its provider documents it. */
export interface Dialect {
  readonly name: "anthropic" | "openai" | "chat" | "google";
  readonly wrongKey: WireFault;
  unknownModel(model: string): WireFault;
  keyOf(headers: IncomingHttpHeaders): string;
  modelOf(path: string, body: Body): string;
  isStream(path: string, body: Body): boolean;
  /** Says what is wrong with a request. */
  check(body: Body): WireFault | undefined;
  resultsOf(body: Body): string[];
  fault(fault: WireFault): object;
  whole(answer: WireAnswer): object;
  stream(answer: WireAnswer): string[];
  /** What a stream says that has begun and cannot go on. */
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

/** Names of fields that a type of a provider's own client has. */
export const fieldsOf = <T>(...names: readonly (keyof T & string)[]): ReadonlySet<string> => new Set(names);

/** The first field of an object that its protocol does not have. */
export const unknownIn = (object: object, known: ReadonlySet<string> | undefined): string | undefined =>
  Object.keys(object).find((name) => known && !known.has(name));

/** What has no counterpart: a result whose call is not there, else a call whose result is not. */
export function unmatched(calls: readonly string[], results: readonly string[]) {
  const result = results.find((id) => !calls.includes(id));
  const call = calls.find((id) => !results.includes(id));
  return { result, call };
}

/** Characters that are a token of English text, more or less; what an image is counts otherwise. */
const charactersPerToken = 4;
const longestText = 100_000;

/** How many tokens a request has, roughly. */
export function tokensOf(body: Body): number {
  const isPicture = (value: string) => value.length > longestText && !/\s/.test(value.slice(0, longestText));
  const text = JSON.stringify(body, (_, value) => (typeof value === "string" && isPicture(value) ? "" : value));
  return Math.ceil(text.length / charactersPerToken);
}
