import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { title } from "../../src/gen/pilothouse/v1/options_pb.ts";

/** Converts `load_state` or `not-found` to `LoadState` or `NotFound`. */
export function pascalCase(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
}

/** Returns the operation id, such as `createSession`, `listSessions`, `getSessionState` or `signUp`. */
export function operationIdOf({ name, parent }: DescMethod): string {
  const [verb = name, ...rest] = wordsOf(name);
  const noun = serviceTag(parent);
  const isResource = parent.file.messages.some((desc) => desc.name === noun);
  if (!isResource && rest.length > 0) return lowerFirst(name);
  return `${verb.toLowerCase()}${name === "List" ? `${noun}s` : noun}${rest.join("")}`;
}

/**
 * Returns the heading of a method: its option `title`, else its name in words. If the name is one word, adds the
 * service's noun: `Create a session`.
 */
export function titleOf(method: DescMethod): string {
  const given = getOption(method, title);
  if (given !== "") return given;
  const [verb = "", ...rest] = wordsOf(method.name);
  const noun = wordsOf(serviceTag(method.parent)).join(" ").toLowerCase();
  if (rest.length > 0) return [verb, ...rest.map((word) => word.toLowerCase())].join(" ");
  return verb === "List" ? `List ${noun}s` : `${verb} ${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;
}

/** Returns the tag of a service: its name without `Service`. */
export function serviceTag(service: DescService): string {
  return service.name.replace(/Service$/, "");
}

function wordsOf(name: string): string[] {
  return name.split(/(?=[A-Z][a-z])/);
}

function lowerFirst(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}
