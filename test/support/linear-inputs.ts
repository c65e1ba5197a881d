import { type DescField, type DescMessage, getOption, hasOption, ScalarType, toJsonString } from "@bufbuild/protobuf";
import {
  FieldRulesSchema,
  field as fieldRules,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { isKnown } from "../../gateway/pages/pages.ts";
import { blockListOf, createPeers } from "../../gateway/peer.ts";
import { formParser } from "../../gateway/rest/form-body.ts";
import { fillText, namesIn } from "../../src/agents/recipes/placeholders.ts";
import { TokenRequestSchema } from "../../src/gen/pilothouse/v1/oauth_pb.ts";
import { keyPrefix, parseToken } from "../../src/identity/api-keys/token.ts";
import { readBearer } from "../../src/identity/bearers.ts";
import { closeArchetypes } from "../../src/platform/browsers/archetypes.ts";
import type { FieldFault } from "../../src/platform/errors.ts";
import { cleanFileName, fileNameFault } from "../../src/platform/file-name.ts";
import { readCursor } from "../../src/platform/list-page.ts";
import { normaliseHost, parseTarget } from "../../src/platform/outgoing/address-rules.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { validate } from "../../src/platform/validation.ts";
import { builtServices } from "../../tools/described-services.ts";
import { checkFrameOf } from "../../workers/bot-checks/vendors.ts";
import { urlGlob } from "../../workers/driver/actions/url-glob.ts";
import { expectLinear } from "./growth.ts";

const resolvePeer = createPeers(blockListOf(["0.0.0.0/0"]), () => "");

/** Fillings of a text. Each makes a careless pattern or loop backtrack. */
const fillings = [
  "a",
  "a ",
  " ",
  "-",
  "a-",
  "a.",
  "/",
  "*a",
  "**a",
  "'\"",
  "\\",
  "<>",
  "%2",
  ":1",
  "[(",
  "{{a",
  "{{a}}",
  "🚢",
  "ü",
  "\u0301",
  ",",
  "=&",
];

const longest = 65_536;

const keys = { prefix: keyPrefix, parse: parseToken };

/** All functions that read text of clients or pages in a process shared by several of them. */
export const textReaders: Readonly<Record<string, (text: string) => unknown>> = {
  "the pattern of a wait": (text) => urlGlob(text.slice(0, 2_048)),
  "a URL matched against a pattern": urlGlob("**a**b*/c**a*d"),
  "the name of an archetype": closeArchetypes,
  "a request id and the headers of proxies": (text) => resolvePeer("127.0.0.1", () => text),
  "a bearer": (text) => readBearer(`Bearer ${keyPrefix}${text}`, [keys]),
  "a cursor": (text) => readCursor(text, /^ses_[0-9a-z]{26}$/),
  "an If-None-Match header": (text) => isKnown('"tag"', text),
  "a form": (text) => formParser(TokenRequestSchema)(Buffer.from(text)),
  "the placeholders of a recipe": (text) => [namesIn(text), fillText(text, new Map([["a", text.slice(0, 100)]]))],
  "the name of a file": fileNameFault,
  "a page's name for a download": cleanFileName,
  "a host": normaliseHost,
  "a host and port": (text) => parseTarget(`${text}:80`),
  "the URL of a page's request": (text) => checkFrameOf(`https://newassets.hcaptcha.com/captcha/${text}`),
  "the host of a page's request": (text) => checkFrameOf(`https://${text}/`),
  JSON: (text) => JSON.parse(`{"a":${JSON.stringify(text)}}`),
};

/** Expects that a text of any filling is read in linear time. */
export function expectLinearInText(read: (text: string) => unknown): void {
  for (const filling of fillings) {
    const make = (length: number) => filling.repeat(Math.ceil(length / filling.length));
    expectLinear(read, make, longest);
    expectLinear(read, (length) => `a${make(length)}b`, longest);
  }
}

/** Request with one field of variable length. */
export interface RequestInput {
  readonly name: string;
  /** Reader and rules of the field. Inputs of one kind take the same path through the code. */
  readonly kind: string;
  readonly request: DescMessage;
  /** Creates the JSON of the request. */
  readonly make: (length: number) => unknown;
}

/** JSON requests, without requests whose body is raw bytes. */
const requests = new Set(
  builtServices
    .flatMap(({ methods }) => methods.map(({ method }) => method.input))
    .filter(({ fields }) => !fields.some(({ message }) => message?.typeName === "google.api.HttpBody")),
);

/** All ways to make one field of a request long, including fields of nested messages. */
export const requestInputs: readonly RequestInput[] = [...requests].flatMap((request) => [
  { name: `${request.name} with many unknown keys`, kind: "unknown keys", request, make: manyKeys },
  ...[...fillMessage(request, (json) => json, 4)].map((growth) => ({ ...growth, request })),
]);

/** Expects that a request is read and checked in time linear in the length of one field. */
export function expectLinearRequest({ request, make }: RequestInput): void {
  const read = compileReader(request);
  const check = (json: unknown) => {
    const faults: FieldFault[] = [];
    const message = read(json, faults);
    if (faults.length === 0) validate(request, message);
  };
  expectLinear(check, make, 4_096);
}

function manyKeys(length: number): object {
  return Object.fromEntries(Array.from({ length }, (_, index) => [`key-${index}`, 1]));
}

type Growth = Omit<RequestInput, "request">;

/** Yields all ways to fill one field of a request, wrapped in the JSON around it. */
function* fillField(field: DescField, wrap: (json: unknown) => unknown, depth: number): Generator<Growth> {
  const grow = (what: string, make: Growth["make"]): Growth => ({
    name: `${field.parent.name}.${field.name} with ${what}`,
    kind: `${kindOf(field)} with ${what}`,
    make: (length) => wrap(make(length)),
  });
  if (field.fieldKind === "list") {
    yield grow("many items", (length) => Array.from({ length }, (_, index) => sample(field, index)));
    yield grow("many wrong items", (length) => Array.from({ length }, () => []));
    if (field.message && depth > 0) yield* fillMessage(field.message, (json) => wrap([json]), depth - 1);
  } else if (field.fieldKind === "map") {
    const entries = (length: number, value: unknown) => Array.from({ length }, (_, index) => [`key-${index}`, value]);
    yield grow("many entries", (length) => Object.fromEntries(entries(length, "a")));
    yield grow("many wrong entries", (length) => Object.fromEntries(entries(length, 1)));
  } else if (field.message) {
    if (depth > 0) yield* fillMessage(field.message, wrap, depth - 1);
  } else if (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES) {
    for (const filling of ["a", "a-", "-", "a b", "ü", "a.", "/", "@", ":1"])
      yield grow(`much of ${filling}`, (length) => filling.repeat(length * 8));
  }
}

/** Identifies the code that reads and checks a field: its type, its rules without lengths, and its message's rules. */
function kindOf(field: DescField): string {
  const rules = toJsonString(FieldRulesSchema, getOption(field, fieldRules)).replaceAll(/:"\d+"/g, "");
  const parent = hasOption(field.parent, messageRules) ? field.parent.typeName : "";
  return [field.fieldKind, field.scalar ?? field.message?.typeName ?? field.enum?.typeName, rules, parent].join(" ");
}

function sample(field: DescField, index: number): unknown {
  if (field.message) return {};
  return field.scalar === ScalarType.STRING ? `item-${index}` : index;
}

function* fillMessage(desc: DescMessage, wrap: (json: unknown) => unknown, depth: number): Generator<Growth> {
  for (const field of desc.fields) {
    const place = (json: unknown) =>
      wrap({ [field.oneof?.name ?? field.name]: field.oneof ? { kind: field.name, ...Object(json) } : json });
    yield* fillField(field, place, depth);
  }
}
