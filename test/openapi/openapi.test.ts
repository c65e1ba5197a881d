import { create, type DescMessage } from "@bufbuild/protobuf";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import type { Json, Operation, Parameter, Schema } from "../../gateway/openapi/model.ts";
import { parseForm } from "../../gateway/rest/form-body.ts";
import { compileRequestReader } from "../../gateway/rest/request-reader.ts";
import { parseTemplate } from "../../gateway/rest/template.ts";
import type { HttpRoute } from "../../src/http-route.ts";
import { errorTable, extensionsOf, isErrorSlug } from "../../src/platform/error-table.ts";
import type { FieldFault } from "../../src/platform/errors.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import { validate } from "../../src/platform/validation.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import { allServices, builtServices, describeServices } from "./contract.ts";

interface Route {
  readonly name: string;
  readonly served: ServedMethod;
  readonly route: HttpRoute;
}

const document = describeServices(allServices);
const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { "date-time": true, email: true } });
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
  if (!operation) {
    throw new Error(`${route.verb} ${route.template} is not in the document`);
  }
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

function compile(schema: Schema | undefined): ValidateFunction {
  const text = JSON.stringify(schema ?? false).replaceAll('"#/', '"openapi#/');
  return ajv.compile(JSON.parse(text));
}

function faultsOf(check: ValidateFunction, value: unknown): string[] {
  return check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

describe("the OpenAPI document", () => {
  test("is what the committed contract says", async () => {
    const text = `${JSON.stringify(describeServices(builtServices), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot("../contract/openapi.json");
  });

  test.each([
    ["of the built services", builtServices],
    ["of the whole contract", allServices],
  ])("%s is valid OpenAPI 3.1", async (_, services) => {
    const { valid, errors } = await new Validator().validate({ ...structuredClone(describeServices(services)) });
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
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

  test("refers to nothing that is not there", () => {
    const references = [...JSON.stringify(document).matchAll(/"#\/([^"]+)"/g)].map(([, path]) => String(path));
    const missing = references.filter((path) => {
      const [section = "", kind = "", name = ""] = path.split("/");
      const components: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { ...document.components };
      return section !== "components" || components[kind]?.[name] === undefined;
    });
    expect(missing).toEqual([]);
  });
});

const operations = routesOf(allServices).map((entry) => {
  const operation = operationOf(entry);
  const [type, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const [status, answer] = Object.entries(operation.responses)[0] ?? [];
  const json = answer && "content" in answer ? answer.content?.["application/json"] : undefined;
  return { ...entry, operation, type, body, status, json };
});

describe("an operation", () => {
  test.each(operations)("$name takes its example request", ({ served, route, operation, type, body }) => {
    const parse = type === "application/x-www-form-urlencoded" ? parseForm : undefined;
    const read = compileRequestReader(served.method.input, route, parseTemplate(route.template).variables, parse);
    const message = read({
      variables: examplesOf(parametersOf(operation, "path")),
      query: examplesOf(parametersOf(operation, "query")),
      body: body && Buffer.from(encode(type, body.example)),
    });
    expect(() => validate(served.method.input, message)).not.toThrow();
  });

  test.each(operations.filter(({ body }) => body))(
    "$name has a body schema that takes the example and refuses an unknown field",
    ({ body }) => {
      const check = compile(body?.schema);
      expect(faultsOf(check, body?.example)).toEqual([]);
      expect(check({ ...Object(body?.example), unknown_field: 1 })).toBe(false);
    },
  );

  test.each(operations.filter(({ json }) => json))("$name answers what its schema describes", ({ served, json }) => {
    const check = compile(json?.schema);
    const { output } = served.method;
    expect(faultsOf(check, compileWriter(output)(create(output)))).toEqual([]);
    expect(faultsOf(check, json?.example)).toEqual([]);
    expect(rewritten(output, json?.example)).toEqual(json?.example);
  });

  test.each(operations)("$name answers its status and the problems of its rules", ({ served, operation, status }) => {
    expect(Number(status)).toBe(served.rules.successStatus || 200);
    for (const slug of served.rules.errors) {
      const { status: expected } = Object.entries(errorTable).find(([key]) => key === slug)?.[1] ?? {};
      expect(JSON.stringify(operation.responses[String(expected)])).toContain(slug);
    }
  });
});

function encode(type: string | undefined, example: Json | undefined): string {
  return type === "application/x-www-form-urlencoded"
    ? new URLSearchParams(Object.entries(Object(example))).toString()
    : JSON.stringify(example);
}

/** Reads JSON into a message and writes it again. */
function rewritten(desc: DescMessage, json: Json | undefined): unknown {
  const faults: FieldFault[] = [];
  const message = compileReader(desc)(json, faults);
  expect(faults).toEqual([]);
  return compileWriter(desc)(message);
}

test("problem schemas take the problems of their slug and no other's", () => {
  const check = compile({ $ref: "#/components/schemas/ProblemProfileInUse" });
  const problem = { type: "http://localhost:8080/errors/profile-in-use", title: "Profile in use", status: 409 };
  expect(faultsOf(check, { ...problem, active_session_id: "ses_1", detail: "in use", instance: "req_1" })).toEqual([]);
  expect(check(problem)).toBe(false);
  expect(check({ ...problem, active_session_id: "ses_1", type: "http://localhost:8080/errors/conflict" })).toBe(false);
});

test("problem schemas have every extension that a failure of their slug can carry", () => {
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
    worker_lost: { type: "boolean", enum: [true], description: expect.stringMatching(/not known\.$/) },
    capture_bytes: { type: "integer" },
  });
});
