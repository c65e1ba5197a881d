import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { parseTemplate } from "../rest/template.ts";

/** Properties of a request message that depend on its routes. */
export interface RequestUse {
  /** Fields set by the path, which the body omits. */
  readonly inPath: ReadonlySet<string>;
  /** Fields that null clears in a PATCH. */
  readonly clearable: ReadonlySet<string>;
}

/** Uses of request messages, by type name. */
export type RequestUses = ReadonlyMap<string, RequestUse>;

/**
 * Derives the use of each request from the routes. Throws if the paths of two routes set different fields of a message.
 */
export function findRequestUses(services: readonly ServedService[]): RequestUses {
  const uses = new Map<string, RequestUse>();
  for (const served of services.flatMap(({ methods }) => methods)) {
    const use = useOf(served);
    if (!use) continue;
    const { typeName } = served.method.input;
    const known = uses.get(typeName);
    if (known && [...known.inPath].join() !== [...use.inPath].join()) {
      throw new Error(`${typeName}: expected all its paths to have the same variables`);
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

/** Returns the fields that a PATCH of a resource can clear: nullable fields, lists and maps. */
function clearableOf(resource: DescMessage): Set<string> {
  const fields = resource.fields.filter(
    (field) => getOption(field, nullable) || field.fieldKind === "list" || field.fieldKind === "map",
  );
  return new Set(fields.map(({ name }) => name));
}
