import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { SchemaCatalogue } from "../../gateway/openapi/json-schema.ts";
import {
  firstExample,
  type Json,
  type JsonSchema,
  type MediaType,
  type Operation,
  type Parameter,
} from "../../gateway/openapi/model.ts";
import { formParser } from "../../gateway/rest/form-body.ts";
import { compileRequestReader } from "../../gateway/rest/request-reader.ts";
import { parseTemplate } from "../../gateway/rest/template.ts";
import { event_type, subscribable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { SessionSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { HttpRoute } from "../../src/kernel/http-route.ts";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { findArchetype } from "../../src/platform/browsers/archetypes.ts";
import { errorTable, extensionsOf, isErrorSlug } from "../../src/platform/error-table.ts";
import type { FieldFault } from "../../src/platform/errors.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import { validate } from "../../src/platform/validation.ts";
import { allServices, builtServices, describeServices } from "../../tools/described-services.ts";

interface Route {
  readonly name: string;
  readonly served: ServedMethod;
  readonly route: HttpRoute;
}

const document = describeServices(allServices);
const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { "date-time": true, email: true, int32: true, int64: true, double: true },
});
ajv.addSchema({ $id: "openapi", ...document });

function routesOf(services: readonly ServedService[]): Route[] {
  return services.flatMap(({ methods }) =>
    methods.flatMap((served) => {
      const { route } = served;
      return route ? [{ name: `${route.verb} ${route.template}`, served, route }] : [];
    }),
  );
}

function operationOf({ route }: Route): Operation {
  const operation = document.paths[route.template]?.[route.verb.toLowerCase()];
  if (!operation) throw new Error(`${route.verb} ${route.template} is not in the document`);
  return operation;
}

function parametersOf(operation: Operation, where: Parameter["in"]): Parameter[] {
  return (operation.parameters ?? []).flatMap((parameter) =>
    "$ref" in parameter || parameter.in !== where ? [] : [parameter],
  );
}

function examplesOf(parameters: readonly Parameter[]): Record<string, string> {
  const shown = parameters.filter(({ example }) => example !== undefined);
  return Object.fromEntries(shown.map(({ name, example }) => [name, String(example)]));
}

function compile(schema: JsonSchema | undefined): ValidateFunction {
  const text = JSON.stringify(schema ?? false).replaceAll('"#/', '"openapi#/');
  return ajv.compile(JSON.parse(text));
}

function faultsOf(check: ValidateFunction, value: unknown): string[] {
  return check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

interface ShownExample {
  readonly path: string;
  readonly schema: JsonSchema;
  readonly example: unknown;
}

/** Yields all examples of schemas, parameters and bodies. */
function* examplesBelow(value: unknown, path: string): Generator<ShownExample> {
  if (typeof value !== "object" || value === null) return;
  const { schema, example, examples = {} } = value as Partial<MediaType>;
  if (typeof schema === "object" && !("x-event-data" in schema)) {
    const values = [...(example === undefined ? [] : [example]), ...Object.values(examples).map((each) => each.value)];
    for (const each of values) yield { path, schema, example: each };
  }
  for (const [key, inner] of Object.entries(value)) {
    if (key !== "schema" && key !== "example" && key !== "examples") yield* examplesBelow(inner, `${path}/${key}`);
  }
}

describe("the OpenAPI document", () => {
  test.each([
    ["of the built services", builtServices],
    ["of the whole contract", allServices],
  ])("%s is valid OpenAPI 3.1", async (_, services) => {
    const { valid, errors } = await new Validator().validate({ ...structuredClone(describeServices(services)) });
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
  });

  test("passes the recommended rules of a linter", async () => {
    // WebSocket schemas are only referenced below `x-websockets`, and a self-hosted server runs on localhost.
    const rules = { "no-unused-components": "off", "no-server-example.com": "off" } as const;
    const config = await createConfig({ extends: ["recommended"], rules });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: "openapi.json", config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  }, 120_000);

  test("has examples that match their schemas", () => {
    const shown = [...examplesBelow(document, "")];
    expect(shown.length).toBeGreaterThan(400);
    const faults = shown.flatMap(({ path, schema, example }) =>
      faultsOf(compile(schema), example).map((fault) => `${path}: ${fault}`),
    );
    expect(faults).toEqual([]);
  });

  test("has no default on a body field, and no body without a media type", () => {
    const text = JSON.stringify({ ...document, paths: {} });
    expect(text).not.toContain('"default":');
    expect(JSON.stringify(document)).not.toContain("*/*");
  });

  test("has no schema with a name that generators reserve", () => {
    const own = routesOf(allServices).flatMap((route) => {
      const { operationId } = operationOf(route);
      return [`${operationId}Response`, `${operationId}Params`, `${operationId}JSONRequestBody`];
    });
    const names = new Set(own.map((name) => name.toLowerCase()));
    const clashing = Object.entries(document.components.schemas).filter(
      ([name, { properties = {} }]) => names.has(name.toLowerCase()) || name.toLowerCase() in properties,
    );
    expect(clashing.map(([name]) => name)).toEqual([]);
  });

  test("has every request header that a method reads", () => {
    const namesOf = (verb: string, template: string) => JSON.stringify(document.paths[template]?.[verb]?.parameters);
    expect(namesOf("post", "/v1/agent-sessions/{id}/message")).toContain("/ByokLlmApiKey");
    expect(namesOf("put", "/v1/sessions/{id}/live/files/{name}")).toContain("/ViewerKey");
    expect(namesOf("get", "/v1/sessions/{id}/live/files/{name}")).toContain("/ViewerKey");
  });

  test("has every route of the built services and no other", () => {
    const { paths } = describeServices(builtServices);
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((verb) => `${verb.toUpperCase()} ${path}`),
    );
    expect(described.toSorted()).toEqual(
      routesOf(builtServices)
        .map(({ name }) => name)
        .toSorted(),
    );
  });

  test("names every operation once, with a summary and a description", () => {
    const all = routesOf(allServices).map(operationOf);
    expect(new Set(all.map(({ operationId }) => operationId)).size).toBe(all.length);
    for (const { operationId, summary, description } of all) {
      expect([operationId, summary !== "", description !== ""]).toEqual([operationId, true, true]);
    }
  });

  test("describes every field and parameter", () => {
    const undescribed = Object.entries(document.components.schemas).flatMap(([name, { properties = {} }]) =>
      Object.entries(properties)
        .filter(([, schema]) => !schema.description && schema.const === undefined)
        .map(([property]) => `${name}.${property}`),
    );
    expect(undescribed).toEqual([]);
  });

  test("has no broken reference", () => {
    const references = [...JSON.stringify(document).matchAll(/"#\/([^"]+)"/g)].map(([, path]) => String(path));
    const missing = references.filter((path) => {
      const [section = "", kind = "", name = ""] = path.split("/");
      const components: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { ...document.components };
      return section !== "components" || components[kind]?.[name] === undefined;
    });
    expect(missing).toEqual([]);
  });
});

describe("the input of client generators", () => {
  const { components, paths, webhooks = {}, "x-websockets": websockets = {} } = describeServices(builtServices);
  const schemaOf = (name: string): JsonSchema => components.schemas[name] ?? {};
  const all = Object.values(paths).flatMap((item) => Object.values(item));

  test("requires all fields that responses always contain", () => {
    for (const [name, members] of [
      ["Session", ["status", "created_at", "expires_at", "viewport", "profile_id"]],
      ["SessionState", ["status", "viewport", "control", "egress", "pages"]],
      ["CaptureResult", ["kind", "captured_at", "data"]],
      ["Profile", ["created_at", "updated_at"]],
    ] as const) {
      expect(schemaOf(name).required).toEqual(expect.arrayContaining([...members]));
    }
    expect(schemaOf("SessionState").required).not.toContain("challenge");
    expect(schemaOf("DriveResult").required ?? []).toEqual([]);
  });

  test("lists the keys of a PATCH that null clears", () => {
    const { name, description, labels } = schemaOf("UpdateProfileRequest").properties ?? {};
    expect([name?.type, description?.type, labels?.type]).toEqual(["string", ["string", "null"], ["object", "null"]]);
  });

  test("has signed webhooks for `test.ping` and all event types of subscriptions", () => {
    const messages = allServices.flatMap(({ service }) => service.file.messages);
    const subscribed = messages.filter((message) => getOption(message, subscribable));
    const types = new Set(subscribed.map((message) => getOption(message, event_type)));
    expect(types.size).toBe(14);
    expect(new Set(Object.keys(webhooks))).toEqual(types.add("test.ping"));
    for (const { post } of Object.values(webhooks)) {
      const names = post && parametersOf(post, "header").map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(["X-Service-Signature", "webhook-signature"]));
    }
  });

  test("describes the events that only streams contain", () => {
    const { "x-stream-events": events = {} } = describeServices(builtServices);
    for (const type of ["page_opened", "page_navigated", "page_closed", "console", "dialog", "download"]) {
      const { schema } = events[`session.${type}`]?.post?.requestBody?.content["application/json"] ?? {};
      const name = schema?.properties?.data?.$ref?.replace("#/components/schemas/", "") ?? "";
      expect(schemaOf(name).required).toContain("session_id");
    }
  });

  test("omits fields of the path from WebSocket messages", () => {
    const client = websockets["/v1/sessions/{session_id}/drive"]?.client;
    const check = compile(client);
    expect(check({ id: "1", state: {} })).toBe(true);
    expect(check({ id: "1", state: {}, session_id: "ses_1" })).toBe(false);
  });

  test("names operations like functions, with short titles", () => {
    expect(all.map(({ operationId }) => operationId)).toEqual(
      expect.arrayContaining(["createSession", "listSessions", "getSessionState", "deleteProfile", "listArchetypes"]),
    );
    for (const { operationId, summary } of routesOf(allServices).map(operationOf)) {
      expect(operationId).toMatch(/^[a-z]+([A-Z][A-Za-z]*)*$/);
      expect(summary).toMatch(/^[A-Z][^.:]{3,39}$/);
    }
  });

  test("has an example of every action, wait and capture", () => {
    const kindsOf = (path: string) =>
      Object.keys(paths[path]?.post?.requestBody?.content["application/json"]?.examples ?? {});
    expect(kindsOf("/v1/sessions/{id}/interact")).toEqual(expect.arrayContaining(["tap", "type", "drag", "swipe"]));
    expect(kindsOf("/v1/sessions/{id}/wait")).toEqual([
      "selector",
      "url",
      "load_state",
      "text",
      "network_idle",
      "document_idle",
    ]);
    expect(kindsOf("/v1/sessions/{id}/capture")).toEqual(["screenshot", "dom_snapshot", "pdf"]);
  });

  test("has defaults, and omits bounds that follow from a number's type", () => {
    const { runtime, idle_timeout_seconds, on_challenge } = schemaOf("CreateSessionRequest").properties ?? {};
    expect([runtime, idle_timeout_seconds, on_challenge].map((field) => field?.["x-default"])).toEqual([
      "headless-shell",
      300,
      "pause",
    ]);
    const { quality, paper, scale } = schemaOf("CaptureRequest").properties ?? {};
    expect([quality, paper, scale].map((field) => field?.["x-default"])).toEqual([undefined, undefined, undefined]);
    const listed = paths["/v1/sessions"]?.get;
    const [limit] = listed ? parametersOf(listed, "query") : [];
    expect([limit?.name, limit?.schema.default]).toEqual(["limit", 20]);
    expect(JSON.stringify(document)).not.toMatch(/4294967295|9007199254740991|2147483647/);
  });

  test("has examples of possible sessions and devices", () => {
    const exampleOf = (path: string) => {
      const answer = paths[path]?.get?.responses["200"];
      return Object(answer && "content" in answer ? answer.content?.["application/json"]?.example : undefined);
    };
    const session = exampleOf("/v1/sessions/{id}");
    expect(session).toMatchObject({ status: "live", live_at: expect.stringMatching(/Z$/), ended_at: null });
    expect(Date.parse(session.expires_at)).toBeGreaterThan(Date.parse(session.created_at));
    const [device] = exampleOf("/v1/archetypes").data;
    const { viewport, deviceScaleFactor } = findArchetype(device.name) ?? {};
    expect(device.viewport).toEqual({ ...viewport, device_scale_factor: deviceScaleFactor });
  });

  test("has examples of a page with commands and events", () => {
    const state = paths["/v1/sessions/{id}/state"]?.get?.responses["200"];
    expect(JSON.stringify(state)).toContain('"active":true');
    const shown = Object.values(document.webhooks ?? {}).map(({ post }) => JSON.stringify(post?.requestBody));
    expect(shown.length).toBeGreaterThan(10);
    // Placeholder for a text without an example.
    expect(shown.filter((event) => /"text["-]/.test(event))).toEqual([]);
  });

  test("fails the start if two schemas have the same name", () => {
    const catalogue = new SchemaCatalogue(() => "", new Map());
    catalogue.add("Session", { type: "object" });
    expect(() => catalogue.response(SessionSchema)).toThrow("two schemas are called Session");
  });
});

const operations = routesOf(allServices).map((entry) => {
  const operation = operationOf(entry);
  // Raw bodies have no example.
  const [type, body] =
    Object.entries(operation.requestBody?.content ?? {}).find(([, media]) => firstExample(media)) ?? [];
  const [status, answer] = Object.entries(operation.responses)[0] ?? [];
  const json = answer && "content" in answer ? answer.content?.["application/json"] : undefined;
  return { ...entry, operation, type, body, status, json };
});

describe("an operation", () => {
  test.each(operations)("$name accepts its example request", ({ served, route, operation, type, body }) => {
    const parse = type === "application/x-www-form-urlencoded" ? formParser(served.method.input) : undefined;
    const read = compileRequestReader(served.method.input, route, parseTemplate(route.template).variables, parse);
    for (const example of bodyExamples(body)) {
      const message = read({
        variables: examplesOf(parametersOf(operation, "path")),
        query: examplesOf(parametersOf(operation, "query")),
        body: body && Buffer.from(encode(type, example)),
      });
      expect(() => validate(served.method.input, message)).not.toThrow();
    }
  });

  test.each(operations.filter(({ body }) => body))(
    "$name has a body schema that accepts the example and refuses an unknown field",
    ({ body }) => {
      const check = compile(body?.schema);
      for (const example of bodyExamples(body)) {
        expect(faultsOf(check, example)).toEqual([]);
        expect(check({ ...Object(example), unknown_field: 1 })).toBe(false);
      }
    },
  );

  test.each(operations.filter(({ json }) => json?.example))(
    "$name responds as its schema describes",
    ({ served, json }) => {
      const check = compile(json?.schema);
      const { output } = served.method;
      expect(faultsOf(check, json?.example)).toEqual([]);
      expect(rewritten(output, json?.example)).toEqual(json?.example);
    },
  );

  test.each(operations)("$name has its status and the problems of its rules", ({ served, operation, status }) => {
    expect(Number(status)).toBe(served.rules.successStatus || 200);
    const { createdStatus } = served.rules;
    if (createdStatus > 0)
      expect(operation.responses[String(createdStatus)]).toEqual(operation.responses[status ?? ""]);
    for (const slug of served.rules.errors) {
      const { status: expected } = Object.entries(errorTable).find(([key]) => key === slug)?.[1] ?? {};
      expect(JSON.stringify(operation.responses[String(expected)])).toContain(slug);
    }
  });
});

/** Returns every example of a body, or undefined if there is no body. */
function bodyExamples(body: MediaType | undefined): readonly (Json | undefined)[] {
  return body?.examples ? Object.values(body.examples).map(({ value }) => value) : [body && firstExample(body)];
}

function encode(type: string | undefined, example: Json | undefined): string {
  return type === "application/x-www-form-urlencoded"
    ? new URLSearchParams(Object.entries(Object(example))).toString()
    : JSON.stringify(example);
}

/** Converts JSON to a message and back. */
function rewritten(desc: DescMessage, json: Json | undefined): unknown {
  const faults: FieldFault[] = [];
  const message = compileReader(desc)(json, faults);
  expect(faults).toEqual([]);
  return compileWriter(desc)(message);
}

test("problem schemas accept only problems of their own slug", () => {
  const check = compile({ $ref: "#/components/schemas/ProblemProfileInUse" });
  const problem = { type: "http://localhost:8080/errors/profile-in-use", title: "Profile in use", status: 409 };
  expect(faultsOf(check, { ...problem, active_session_id: "ses_1", detail: "in use", instance: "req_1" })).toEqual([]);
  expect(check(problem)).toBe(false);
  expect(check({ ...problem, active_session_id: "ses_1", type: "http://localhost:8080/errors/conflict" })).toBe(false);
});

test("problem schemas have every extension of a failure with their slug", () => {
  const { schemas } = describeServices(allServices).components;
  const described = Object.entries(schemas).flatMap(([name, { properties = {} }]) => {
    const slug = String(properties.type?.const ?? "").replace(/^.*\//, "");
    return isErrorSlug(slug) && name.startsWith("Problem") ? [[slug, properties] as const] : [];
  });
  expect(described.length).toBeGreaterThan(25);
  for (const [slug, properties] of described) {
    expect(Object.keys(properties)).toEqual(["type", "status", ...Object.keys(extensionsOf(slug))]);
  }
  expect(Object.fromEntries(described)["driver-error"]).toMatchObject({
    worker_lost: { type: "boolean", description: expect.stringMatching(/may have run\.$/) },
    capture_bytes: { type: "integer" },
  });
});
