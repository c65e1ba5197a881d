import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { errorTable } from "../../src/platform/error-table.ts";
import { assertHasForm, isWritable } from "../../src/platform/rest-json/field-names.ts";
import { requestBounds } from "./bound-rules.ts";
import { buildContracts, type Contract } from "./contract-image.ts";
import endpoints from "./endpoints.json" with { type: "json" };
import errorSlugs from "./error-slugs.json" with { type: "json" };
import { methodRules } from "./method-rules.ts";
import { plantedFaults } from "./planted-faults.ts";
import { shapeRules } from "./shape-rules.ts";

const root = join(import.meta.dirname, "../..");

const rules = { ...methodRules, ...shapeRules, requestBounds };

/** Test titles of the rules. */
const sentences: Readonly<Record<keyof typeof rules, string>> = {
  promisedEndpoints: "has every promised endpoint and no other",
  oneRoute: "has one REST route per method, or one WebSocket per bidirectional method",
  bodies: "has no body for GET and DELETE, and the whole message as body otherwise",
  sideEffects: "marks exactly the unary GETs as free of side effects",
  pathVariables: "has only singular strings of the request as path variables",
  distinctRoutes: "has distinct routes",
  knownScopes: "has only known scopes, and none on public methods",
  stepUps: "requires a step-up for exactly the decided methods",
  beforeAcceptance: "serves auth, legal and the caller's own record before the terms are accepted",
  knownBuckets: "uses the rate limit buckets of the interface",
  knownErrors: "lists only errors of the error table",
  idempotencyConflicts: "lists conflict for methods that store responses by Idempotency-Key",
  successStatus: "has status 204 for empty responses",
  kindIsFree: "reserves the name kind for oneofs",
  enumZeros: "has an unspecified zero value in every enum",
  timestampNames: "names exactly the timestamps *_at",
  comments: "documents every service, method, message, field, oneof, enum and value",
  lists: "paginates all lists alike",
  updateMasks: "has an update mask at the end of exactly the PATCH requests",
  secrets: "redacts fields with secret names in logs",
  eventPayloads: "has one payload message per event type of the interface",
  filePackages: "names the packages of generated code for Go, Java and C#",
  absences: "marks every field that can be absent as optional or nullable",
  requestBounds: "bounds every string, list, map and enum of a request",
};

const header = `
import "buf/validate/validate.proto";
import "google/api/annotations.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "pilothouse/v1/options.proto";
`;

function isRule(name: string): name is keyof typeof rules {
  return Object.hasOwn(rules, name);
}

function sentenceOf(name: string): string {
  return isRule(name) ? sentences[name] : name;
}

/** Writes each planted fault into a separate package, next to a copy of the protos. */
async function plant(directory: string): Promise<void> {
  await cp(join(root, "proto"), directory, { recursive: true });
  await mkdir(join(directory, "planted"));
  for (const [rule, { source }] of Object.entries(plantedFaults)) {
    const text = `syntax = "proto3";\npackage planted.${rule};\n${header}\n${source}`;
    await writeFile(join(directory, "planted", `${rule}.proto`), text);
  }
}

describe("the contract", () => {
  let contract: Contract;

  beforeAll(async () => {
    contract = (await buildContracts())("pilothouse.v1");
  });

  test.each(Object.entries(rules).map(([name, rule]) => ({ sentence: sentenceOf(name), rule })))(
    "$sentence",
    ({ rule }) => {
      expect(rule(contract)).toEqual([]);
    },
  );

  test("is read completely", () => {
    expect(contract.methods.length).toBeGreaterThan(endpoints.interface.length);
    expect(new Set(endpoints.interface).size).toBe(86);
  });

  test("has a form in REST JSON for every field", () => {
    const fields = contract.messages.flatMap((message) => message.fields).filter(isWritable);
    expect(() => fields.map(assertHasForm)).not.toThrow();
  });

  test("has every error of the interface in the error table, with the same status", () => {
    expect(Object.keys(errorSlugs)).toHaveLength(32);
    const statuses = new Map(Object.entries(errorTable).map(([slug, { status }]) => [slug, status]));
    const known = Object.keys(errorSlugs).map((slug) => [slug, statuses.get(slug)]);
    expect(Object.fromEntries(known)).toEqual(errorSlugs);
  });
});

describe("a contract rule", () => {
  let contractOf: (packageName: string) => Contract;

  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), "pilothouse-planted-"));
    try {
      await plant(directory);
      contractOf = await buildContracts(directory);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test("has a planted fault, except the two tested manually", () => {
    const byHand = ["promisedEndpoints", "eventPayloads"];
    expect([...Object.keys(plantedFaults), ...byHand].sort()).toEqual(Object.keys(rules).sort());
  });

  test.each(Object.entries(plantedFaults).map(([name, { faults }]) => ({ name, faults })))(
    "refuses the fault planted against $name",
    ({ name, faults }) => {
      const found = isRule(name) ? rules[name](contractOf(`planted.${name}`)) : [];
      expect(found).toEqual(faults.map((fault) => expect.stringContaining(fault)));
    },
  );

  test("reports missing and unpromised endpoints", () => {
    const found = rules.promisedEndpoints(contractOf("planted.bodies"));
    expect(found).toContain("POST /v1/sessions/{id}/navigate is missing");
    expect(found).toContain("POST /v1/oauth/token is missing");
    expect(found).toContain("GET /v1/a was not promised");
    expect(found).toHaveLength(endpoints.interface.length + endpoints.decided.length + 4);
  });

  test("reports an event type without a payload message, and one with two", () => {
    const { messages, ...rest } = contractOf("pilothouse.v1");
    const ping = messages.filter((message) => message.name === "TestPingEvent");
    const others = messages.filter((message) => message.name !== "SessionFailedEvent");
    expect(rules.eventPayloads({ ...rest, messages: [...others, ...ping] })).toEqual([
      "session.failed has no payload message",
      "test.ping has two payload messages",
    ]);
  });
});
