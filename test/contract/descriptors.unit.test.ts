import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { errorTable } from "../../src/platform/error-table.ts";
import { requestBounds } from "./bound-rules.ts";
import { buildContracts, type Contract } from "./contract-image.ts";
import endpoints from "./endpoints.json" with { type: "json" };
import errorSlugs from "./error-slugs.json" with { type: "json" };
import { methodRules } from "./method-rules.ts";
import { plantedFaults } from "./planted-faults.ts";
import { shapeRules } from "./shape-rules.ts";

const root = join(import.meta.dirname, "../..");

const rules = { ...methodRules, ...shapeRules, requestBounds };

/** What each rule says of the contract. */
const sentences: Readonly<Record<keyof typeof rules, string>> = {
  promisedEndpoints: "should have every endpoint that was promised, and no other",
  oneDoor: "should open one door beside gRPC and Connect to every method: REST, or WebSocket to bidirectional ones",
  bodies: "should take no body with GET and DELETE, and the whole message with the others",
  sideEffects: "should mark as free of side effects what is a unary GET, and nothing else",
  pathVariables: "should name in paths only singular strings of the request",
  distinctRoutes: "should not have two methods on one route",
  knownScopes: "should ask for known scopes, and for none in public",
  stepUps: "should ask for a step-up where it was decided, and nowhere else",
  beforeAcceptance: "should serve auth, legal and the caller's own record before the terms are accepted",
  knownBuckets: "should draw from the buckets of the interface where it says so",
  knownErrors: "should name only errors of the error table",
  idempotencyConflicts: "should name conflict where an Idempotency-Key can be used twice",
  successStatus: "should answer 204 where nothing is answered",
  kindIsFree: "should leave the name kind to oneofs",
  enumZeros: "should say nothing by the zero of an enum",
  timestampNames: "should name points in time, and nothing else, by _at",
  comments: "should explain every service, method, message, field, oneof, enum and value",
  lists: "should page all lists alike",
  updateMasks: "should end the request of PATCH, and no other, with an update mask",
  secrets: "should keep what is secret by its name out of logs",
  eventPayloads: "should have one payload message for every event type of the interface",
  filePackages: "should name the packages of generated code for Go, Java and C#",
  requestBounds: "should bound every string, list, map and enum that a client can send",
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

/** Puts the planted faults beside a copy of our protos, each in a package of its own. */
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

  test("should be looked at whole", () => {
    expect(contract.methods.length).toBeGreaterThan(endpoints.interface.length);
    expect(new Set(endpoints.interface).size).toBe(86);
  });

  test("should have every error of the interface in the error table, with its status", () => {
    expect(Object.keys(errorSlugs)).toHaveLength(32);
    const statuses = new Map(Object.entries(errorTable).map(([slug, { status }]) => [slug, status]));
    const known = Object.keys(errorSlugs).map((slug) => [slug, statuses.get(slug)]);
    expect(Object.fromEntries(known)).toEqual(errorSlugs);
  });
});

describe("the rules of the contract", () => {
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

  test("should each have a fault planted against it, but for the two that are tried by hand", () => {
    const byHand = ["promisedEndpoints", "eventPayloads"];
    expect([...Object.keys(plantedFaults), ...byHand].sort()).toEqual(Object.keys(rules).sort());
  });

  test.each(Object.entries(plantedFaults).map(([name, { faults }]) => ({ name, faults })))(
    "should refuse what is planted against $name",
    ({ name, faults }) => {
      const found = isRule(name) ? rules[name](contractOf(`planted.${name}`)) : [];
      expect(found).toEqual(faults.map((fault) => expect.stringContaining(fault)));
    },
  );

  test("should see an endpoint that is missing, and one that was not promised", () => {
    const found = rules.promisedEndpoints(contractOf("planted.bodies"));
    expect(found).toContain("POST /v1/sessions/{id}/navigate is missing");
    expect(found).toContain("POST /v1/oauth/token is missing");
    expect(found).toContain("GET /v1/a was not promised");
    expect(found).toHaveLength(endpoints.interface.length + endpoints.decided.length + 4);
  });

  test("should see an event type without payload message, and one with two", () => {
    const { messages, ...rest } = contractOf("pilothouse.v1");
    const ping = messages.filter((message) => message.name === "TestPingEvent");
    const others = messages.filter((message) => message.name !== "SessionFailedEvent");
    expect(rules.eventPayloads({ ...rest, messages: [...others, ...ping] })).toEqual([
      "session.failed has no payload message",
      "test.ping has two payload messages",
    ]);
  });
});
