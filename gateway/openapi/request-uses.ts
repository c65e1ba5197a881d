import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { parseTemplate } from "../rest/template.ts";

/** What routes make of the message that they take. */
export interface RequestUse {
  /** Fields that the path says, so that the body does not. */
  readonly inPath: ReadonlySet<string>;
  /** Of a PATCH: the fields that a null clears. */
  readonly clearable: ReadonlySet<string>;
}

/** By the name of a request's type. */
export type RequestUses = ReadonlyMap<string, RequestUse>;

/** Reads off the routes how each request is written. A message that two routes write differently stops the start. */
export function findRequestUses(services: readonly ServedService[]): RequestUses {
  const uses = new Map<string, RequestUse>();
  for (const served of services.flatMap(({ methods }) => methods)) {
    const use = useOf(served);
    if (!use) continue;
    const { typeName } = served.method.input;
    const known = uses.get(typeName);
    if (known && [...known.inPath].join() !== [...use.inPath].join()) {
      throw new Error(`${typeName} has two paths, which say different fields of it`);
    }
    uses.set(typeName, use);
  }
  return uses;
}

function useOf({ method, rules, route }: ServedMethod): RequestUse | undefined {
  const template = route?.template ?? rules.websocket;
  if (template === "") return undefined;
  const inPath = new Set(parseTemplate(template).variables);
  return { inPath, clearable: route?.verb === "PATCH" ? clearableOf(method.output) : new Set() };
}

/** What a thing can be without: a null in its answers, or an empty list or map. */
function clearableOf(thing: DescMessage): Set<string> {
  const fields = thing.fields.filter(
    (field) => getOption(field, nullable) || field.fieldKind === "list" || field.fieldKind === "map",
  );
  return new Set(fields.map(({ name }) => name));
}
