import { type DescMethod, type JsonObject, toJson } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { requestExample } from "../../../gateway/openapi/examples.ts";
import type { ServedMethod } from "../../../src/kernel/registry.ts";
import type { FieldFault } from "../../../src/platform/errors.ts";
import { compileReader } from "../../../src/platform/rest-json/reader.ts";
import { builtServices } from "../../../tools/described-services.ts";
import { oneOfEach } from "../../support/one-of-each.ts";
import type { TransportName } from "../../support/transport-calls.ts";
import { rows } from "./rows.ts";

/** Method of the registry, with the requirements of its row. */
export interface WalkedMethod {
  readonly name: string;
  readonly served: ServedMethod;
  /** Requirements of the method's row. */
  readonly needs: ReadonlySet<string>;
  /** Fields that identify a thing, or empty. */
  readonly variables: readonly string[];
}

/** Methods that may end their caller, and therefore run last. */
const ends: readonly string[] = ["TeamService.Leave", "AuthService.LogOut"];

/** Returns all methods of the registry. */
export const walkedMethods: readonly WalkedMethod[] = builtServices
  .flatMap(({ methods }) => methods)
  .map((served) => ({
    name: served.name,
    served,
    needs: new Set<string>(rows[served.name]),
    variables: variablesOf(served),
  }))
  .toSorted((one, other) => ends.indexOf(one.name) - ends.indexOf(other.name));

function variablesOf({ route, rules, method }: ServedMethod): string[] {
  const template = route?.template ?? rules.websocket;
  if (template === "") return method.input.fields.map(({ name }) => name).filter((name) => name === "id");
  return [...template.matchAll(/\{(\w+)\}/g)].flatMap(([, variable = ""]) => variable);
}

/** Returns the methods of a protocol. Bidirectional ones need HTTP/2, which `Connect` and `gRPC` do not use here. */
export function methodsAt(transport: TransportName): readonly WalkedMethod[] {
  return walkedMethods.filter(({ served: { kind, route, rules } }) => {
    if (transport === "REST") return route !== undefined || rules.websocket !== "";
    return kind !== "bidi_streaming" || transport === "gRPC on GRPC_PORT";
  });
}

/** Returns the first method of each kind that protocols treat alike, regardless of scope and thing. */
export function oneOfEachKind(methods: readonly WalkedMethod[]): WalkedMethod[] {
  return oneOfEach(methods, ({ served: { kind, route }, needs, variables }) => {
    const asked = [...needs].map((need) => (need.includes(":") ? "a scope" : need));
    return [kind, route?.verb, variables.length > 0, ...asked].join();
  });
}

/** IDs of an account's things, by service or by method. A new service with things needs an entry. */
export type Things = Readonly<Record<string, string | undefined>>;

/** Returns a valid request for a protocol, with the ID of a thing or with an unknown ID. */
export function requestTo(
  { name, served, variables }: WalkedMethod,
  transport: TransportName,
  things?: Things,
): JsonObject {
  const { route, method } = served;
  const leftOut = new Set([...variables, route?.rawBody?.name ?? ""]);
  const [service = ""] = name.split(".");
  const id = things ? (things[name] ?? things[service]) : "none";
  if (variables.length > 0 && id === undefined) throw new Error(`the walk has no thing of ${service}: give it one`);
  const path = Object.fromEntries(variables.map((variable) => [variable, variable === "name" ? "a.txt" : (id ?? "")]));
  return forTransport(transport, method, { ...requestExample(method.input, leftOut), ...path });
}

/** Converts a request from REST JSON to the JSON of a protocol. */
export function forTransport(transport: TransportName, { input }: DescMethod, request: object): JsonObject {
  if (transport === "REST") return Object(request);
  const faults: FieldFault[] = [];
  const raw = input.fields.filter(({ message: kind }) => kind?.typeName === "google.api.HttpBody");
  const rawNames = new Set(raw.map(({ name }) => name));
  const [bodies, fields] = [true, false].map((isRaw) =>
    Object.fromEntries(Object.entries(request).filter(([name]) => rawNames.has(name) === isRaw)),
  );
  const message = compileReader(input, rawNames)(fields ?? {}, faults);
  if (faults.length > 0) throw new Error(`no request of ${input.name}: ${JSON.stringify(faults)}`);
  const mask = input.fields.find(({ message: kind }) => kind?.typeName === "google.protobuf.FieldMask");
  const changed = Object.keys(request).filter((name) => name !== "id");
  // ProtoJSON encodes the paths of a mask in camel case, regardless of the field names.
  return {
    ...Object(toJson(input, message, { useProtoFieldName: true })),
    ...bodies,
    ...(mask && { [mask.name]: changed.map(protoCamelCase).join(",") }),
  };
}
