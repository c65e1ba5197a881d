import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { isKnown } from "../../gateway/pages/pages.ts";
import { blockListOf, createPeers } from "../../gateway/peer.ts";
import { formParser } from "../../gateway/rest/form-body.ts";
import { keyPrefix, parseToken } from "../../src/api-keys/token.ts";
import { TokenRequestSchema } from "../../src/gen/pilothouse/v1/oauth_pb.ts";
import { readBearer } from "../../src/identity/bearers.ts";
import { closeArchetypes } from "../../src/platform/browsers/archetypes.ts";
import type { FieldFault } from "../../src/platform/errors.ts";
import { cleanFileName, fileNameFault } from "../../src/platform/file-name.ts";
import { readCursor } from "../../src/platform/list-page.ts";
import { normaliseHost, parseTarget } from "../../src/platform/outgoing/address-rules.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { validate } from "../../src/platform/validation.ts";
import { fillText, namesIn } from "../../src/recipes/placeholders.ts";
import { builtServices } from "../../tools/described-services.ts";
import { urlGlob } from "../../workers/actions/url-glob.ts";
import { checkFrameOf } from "../../workers/harness/vendors.ts";
import { expectLinear } from "../support/growth.ts";

const resolvePeer = createPeers(blockListOf(["0.0.0.0/0"]), () => "");

/** What a client can fill a text with, each so that some careless pattern or loop goes back and forth over it. */
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

/** Everything of ours that reads a text of a client's, or of a page's, in a process that serves others. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  "the pattern of a wait": (text) => urlGlob(text.slice(0, 2_048)),
  "an address held against a pattern": urlGlob("**a**b*/c**a*d"),
  "the name of an archetype": closeArchetypes,
  "a request id, and what proxies say of the client": (text) => resolvePeer("127.0.0.1", () => text),
  "a bearer": (text) => readBearer(`Bearer ${keyPrefix}${text}`, [keys]),
  "a cursor": (text) => readCursor(text, /^ses_[0-9a-z]{26}$/),
  "an If-None-Match header": (text) => isKnown('"tag"', text),
  "a form": (text) => formParser(TokenRequestSchema)(Buffer.from(text)),
  "the places of a recipe": (text) => [namesIn(text), fillText(text, new Map([["a", text.slice(0, 100)]]))],
  "the name of a file": fileNameFault,
  "the name that a page gives to a download": cleanFileName,
  "a host": normaliseHost,
  "a host and port": (text) => parseTarget(`${text}:80`),
  "the address of a request of a page's": (text) => checkFrameOf(`https://newassets.hcaptcha.com/captcha/${text}`),
  "the host of a request of a page's": (text) => checkFrameOf(`https://${text}/`),
  JSON: (text) => JSON.parse(`{"a":${JSON.stringify(text)}}`),
};

describe.each(Object.entries(readers))("%s is read in time that grows with its length", (_name, read) => {
  test.each(fillings)("%j", (filling) => {
    const make = (length: number) => filling.repeat(Math.ceil(length / filling.length));
    expectLinear(read, make, longest);
    expectLinear(read, (length) => `a${make(length)}b`, longest);
  });
});

test("a pattern and an address take time that grows with each of them", () => {
  const glob = (length: number) => urlGlob(`${"**a".repeat(length / 4)}**b`);
  const address = "a".repeat(4_096);
  expectLinear((matches: (address: string) => boolean) => matches(address), glob, 2_048);
});

/** Every way to fill one field of a request with much of something, and where in the JSON it stands. */
function* fillField(field: DescField, wrap: (json: unknown) => unknown, depth: number): Generator<Growth> {
  const name = (what: string) => `${field.parent.name}.${field.name} with ${what}`;
  if (field.fieldKind === "list") {
    yield {
      name: name("many items"),
      make: (length) => wrap(Array.from({ length }, (_, index) => sample(field, index))),
    };
    yield { name: name("many wrong items"), make: (length) => wrap(Array.from({ length }, () => [])) };
    if (field.message && depth > 0) yield* fillMessage(field.message, (json) => wrap([json]), depth - 1);
  } else if (field.fieldKind === "map") {
    const entries = (length: number, value: unknown) => Array.from({ length }, (_, index) => [`key-${index}`, value]);
    yield { name: name("many entries"), make: (length) => wrap(Object.fromEntries(entries(length, "a"))) };
    yield { name: name("many wrong entries"), make: (length) => wrap(Object.fromEntries(entries(length, 1))) };
  } else if (field.message) {
    if (depth > 0) yield* fillMessage(field.message, wrap, depth - 1);
  } else if (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES) {
    for (const filling of ["a", "a-", "-", "a b", "ü", "a.", "/", "@", ":1"])
      yield { name: name(`much of ${filling}`), make: (length) => wrap(filling.repeat(length * 8)) };
  }
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

interface Growth {
  readonly name: string;
  readonly make: (length: number) => unknown;
}

/** What is read of JSON: the body of a request that takes any bytes is not. */
const inputs = builtServices
  .flatMap(({ methods }) => methods.map(({ method }) => method.input))
  .filter(({ fields }) => !fields.some(({ message }) => message?.typeName === "google.api.HttpBody"));

describe.each(inputs.map((desc) => [desc.name, desc] as const))(
  "%s is read and checked in time that grows with its length",
  (_name, desc) => {
    const read = compileReader(desc);
    const check = (json: unknown) => {
      const faults: FieldFault[] = [];
      const message = read(json, faults);
      if (faults.length === 0) validate(desc, message);
    };

    test("with many unknown keys", () => {
      const make = (length: number) => Object.fromEntries(Array.from({ length }, (_, index) => [`key-${index}`, 1]));
      expectLinear(check, make, 4_096);
    });

    for (const { name, make } of fillMessage(desc, (json) => json, 4)) {
      test(name, () => expectLinear(check, make, 4_096));
    }
  },
);
