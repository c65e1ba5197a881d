import { type DescMethod, type JsonObject, toJson } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { requestExample } from "../../../gateway/openapi/examples.ts";
import type { ServedMethod } from "../../../src/kernel/registry.ts";
import type { FieldFault } from "../../../src/platform/errors.ts";
import { compileReader } from "../../../src/platform/rest-json/reader.ts";
import { builtServices } from "../../../tools/described-services.ts";
import type { DoorName } from "../../support/door-calls.ts";
import { oneOfEach } from "../../support/one-of-each.ts";
import { rows } from "./rows.ts";

/** A method of the registry on its way through the doors. */
export interface WalkedMethod {
  readonly name: string;
  readonly served: ServedMethod;
  /** What its row says that its callers need. */
  readonly needs: ReadonlySet<string>;
  /** The fields that say which thing it is about; none where it is about no one thing. */
  readonly variables: readonly string[];
}

/** What may end its caller: last of all. */
const ends: readonly string[] = ["TeamService.Leave", "AuthService.LogOut"];

/** Every method of the registry. */
export const walkedMethods: readonly WalkedMethod[] = builtServices
  .flatMap(({ methods }) => methods)
  .map((served) => ({
    ...{ name: served.name, served, needs: new Set<string>(rows[served.name]) },
    variables: variablesOf(served),
  }))
  .toSorted((one, other) => ends.indexOf(one.name) - ends.indexOf(other.name));

function variablesOf({ route, rules, method }: ServedMethod): string[] {
  const template = route?.template ?? rules.websocket;
  if (template === "") return method.input.fields.map(({ name }) => name).filter((name) => name === "id");
  return [...template.matchAll(/\{(\w+)\}/g)].flatMap(([, variable = ""]) => variable);
}

/** Those that a door has: bidirectional methods need HTTP/2, which `Connect` and `gRPC` do not have here. */
export function methodsAt(door: DoorName): readonly WalkedMethod[] {
  return walkedMethods.filter(({ served: { kind, route, rules } }) => {
    if (door === "REST") return route !== undefined || rules.websocket !== "";
    return kind !== "bidi_streaming" || door === "gRPC on GRPC_PORT";
  });
}

/** Of methods that doors treat alike, the first; which scope a method needs, and which thing it is about, makes no difference. */
export function oneOfEachKind(methods: readonly WalkedMethod[]): WalkedMethod[] {
  return oneOfEach(methods, ({ served: { kind, route }, needs, variables }) => {
    const asked = [...needs].map((need) => (need.includes(":") ? "a scope" : need));
    return [kind, route?.verb, variables.length > 0, ...asked].join();
  });
}

/**
 * Identifiers of things of one account, by the service that has them, or by the method that is about another. A new service
 * with things has its line there.
 */
export type Things = Readonly<Record<string, string | undefined>>;

/** A valid request about one of the things, or about none that there is, as a door takes it. */
export function requestTo({ name, served, variables }: WalkedMethod, door: DoorName, things?: Things): JsonObject {
  const { route, method } = served;
  const leftOut = new Set([...variables, route?.rawBody?.name ?? ""]);
  const [service = ""] = name.split(".");
  const id = things ? (things[name] ?? things[service]) : "none";
  if (variables.length > 0 && id === undefined) throw new Error(`the walk has no thing of ${service}: give it one`);
  const path = Object.fromEntries(variables.map((variable) => [variable, variable === "name" ? "a.txt" : (id ?? "")]));
  return forDoor(door, method, { ...requestExample(method.input, leftOut), ...path });
}

/** A request in the JSON of REST, as a door takes it. */
export function forDoor(door: DoorName, { input }: DescMethod, request: object): JsonObject {
  if (door === "REST") return Object(request);
  const faults: FieldFault[] = [];
  const raw = input.fields.filter(({ message: kind }) => kind?.typeName === "google.api.HttpBody");
  const message = compileReader(input, new Set(raw.map(({ name }) => name)))(request, faults);
  if (faults.length > 0) throw new Error(`no request of ${input.name}: ${JSON.stringify(faults)}`);
  const mask = input.fields.find(({ message: kind }) => kind?.typeName === "google.protobuf.FieldMask");
  const changed = Object.keys(request).filter((name) => name !== "id");
  // ProtoJSON has the paths of a mask in camel case, whatever the names of fields are in.
  return {
    ...Object(toJson(input, message, { useProtoFieldName: true })),
    ...(mask && { [mask.name]: changed.map(protoCamelCase).join(",") }),
  };
}
