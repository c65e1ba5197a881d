import {
  type DescField,
  type DescMethodUnary,
  getOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { http } from "../../../src/gen/google/api/annotations_pb.ts";
import { example } from "../../../src/gen/pilothouse/v1/options_pb.ts";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { choicesOf } from "./field-rules.ts";

/** A field of a request, with its place in the body. */
export interface PlacedField {
  readonly path: readonly string[];
  readonly field: DescField;
}

/** A method of the SDKs that performs an action. */
export interface SdkCall {
  readonly name: string;
  /** Fields that are arguments of their own, in their order; `target` stands for the fields of an element or a point. */
  readonly given?: readonly string[];
}

/** Something that a session can do, with the request that does it. */
export interface PlaygroundAction {
  readonly id: string;
  readonly title: string;
  readonly group: string;
  readonly verb: "GET" | "POST";
  /** Path of the request, with `{id}`. */
  readonly path: string;
  readonly fields: readonly PlacedField[];
  readonly moreFields: readonly PlacedField[];
  /** Body of the request before any change, with the examples of the contract. */
  readonly body: JsonObject;
  /** Undefined if the SDKs have only the general request. */
  readonly sdk: SdkCall | undefined;
}

interface ActionFamily {
  readonly group: string;
  readonly method: DescMethodUnary;
  /** Field or oneof whose choices are the actions. Without it, the method is one action. */
  readonly by?: string;
  readonly title: (choice: string) => string;
  /** Methods of the SDKs by choice; `""` is used for others. */
  readonly sdk: Readonly<Record<string, SdkCall>>;
  /** Fields that apply to a choice. Default: all. */
  readonly only?: Readonly<Record<string, readonly string[]>>;
}

const { navigate, interact, wait, observe, read, capture, getState } = SessionService.method;

/** Methods with actions. Choices and fields are read from the contract, so that a new action needs no change here. */
const families: readonly ActionFamily[] = [
  { group: "Page", method: navigate, title: () => "Navigate", sdk: { "": { name: "goto", given: ["url"] } } },
  { group: "Page", method: observe, title: () => "Observe", sdk: { "": { name: "observe" } } },
  { group: "Page", method: read, title: () => "Read as Markdown", sdk: { "": { name: "read" } } },
  { group: "Page", method: getState, title: () => "State", sdk: { "": { name: "state" } } },
  {
    group: "Interact",
    method: interact,
    by: "action",
    title: wordsOf,
    sdk: {
      "": { name: "interact", given: ["action"] },
      tap: { name: "tap", given: ["target"] },
      fill: { name: "fill", given: ["target", "text"] },
      type: { name: "type", given: ["text"] },
      key: { name: "press", given: ["key"] },
      scroll: { name: "scroll" },
    },
  },
  {
    group: "Wait",
    method: wait,
    by: "condition",
    title: (choice) => `Wait for ${choice === "url" ? "URL" : wordsOf(choice).toLowerCase()}`,
    sdk: { "": { name: "wait", given: ["condition"] } },
  },
  {
    group: "Capture",
    method: capture,
    by: "kind",
    title: (choice) => (choice === "pdf" ? "PDF" : choice === "dom_snapshot" ? "DOM snapshot" : wordsOf(choice)),
    sdk: { screenshot: { name: "screenshot" }, pdf: { name: "pdf" } },
    only: {
      screenshot: ["format", "full_page", "selector", "frame", "quality", "scale", "page_id", "timeout_ms"],
      dom_snapshot: ["format", "page_id", "timeout_ms"],
      pdf: ["paper", "landscape", "print_background", "page_id", "timeout_ms"],
    },
  },
];

/** Fields of requests that the form shows only when a person asks for more options. */
const rareFields = new Set(["page_id", "timeout_ms", "while_paused", "observe", "offset", "max_bytes"]);

/** Fields without an input: the path contains the session, and each further action is a request of its own. */
const hiddenFields = new Set(["id", "next"]);

export const playgroundActions: readonly PlaygroundAction[] = families.flatMap(actionsOf);

function actionsOf(family: ActionFamily): PlaygroundAction[] {
  const { method, by } = family;
  if (by === undefined) return [actionOf(family, "", {}, [])];
  const oneof = method.input.oneofs.find(({ name }) => name === by);
  if (oneof) {
    return oneof.fields.map(({ name, message }) => {
      const fields = (message?.fields ?? []).map((field) => ({ path: [by, field.name], field }));
      return actionOf(family, name, { [by]: { kind: name } }, fields);
    });
  }
  const field = method.input.fields.find(({ name }) => name === by);
  return (field ? choicesOf(field) : []).map((choice) => actionOf(family, choice, { [by]: choice }, []));
}

function actionOf(
  { group, method, by, title, sdk, only }: ActionFamily,
  choice: string,
  preset: JsonObject,
  own: readonly PlacedField[],
): PlaygroundAction {
  const common = method.input.fields
    .filter(({ name, oneof }) => !oneof && name !== by && !hiddenFields.has(name))
    .filter(({ name }) => only?.[choice]?.includes(name) ?? true)
    .map((field) => ({ path: [field.name], field }));
  const isRare = (placed: PlacedField): boolean =>
    placed.field.name === "frame" || (!own.includes(placed) && rareFields.has(placed.field.name));
  const all = [...own, ...common];
  const fields = all.filter((placed) => !isRare(placed));
  const { pattern } = getOption(method, http);
  return {
    id: [method.localName, choice].filter(Boolean).join("."),
    title: title(choice),
    group,
    verb: pattern.case === "get" ? "GET" : "POST",
    path: typeof pattern.value === "string" ? pattern.value : "",
    fields,
    moreFields: all.filter(isRare),
    body: fields.reduce((body, placed) => withValue(body, placed.path, exampleOf(placed.field)), preset),
    sdk: sdk[choice] ?? sdk[""],
  };
}

/** Returns the example of a field, or of the fields of a message that a request must have. */
function exampleOf(field: DescField): JsonValue | undefined {
  if (field.message && field.fieldKind === "message") {
    return field.message.fields.reduce<JsonObject>(
      (body, inner) => withValue(body, [inner.name], exampleOf(inner)),
      {},
    );
  }
  const text = getOption(field, example);
  if (text === "") return undefined;
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns a body with another value at a path. Undefined removes the field. */
export function withValue(
  body: JsonObject,
  [name = "", ...rest]: readonly string[],
  value: JsonValue | undefined,
): JsonObject {
  const { [name]: before, ...others } = body;
  if (rest.length > 0) {
    const inner = typeof before === "object" && before !== null && !Array.isArray(before) ? before : {};
    return { ...body, [name]: withValue(inner, rest, value) };
  }
  return value === undefined ? others : { ...body, [name]: value };
}

/** Returns the value of a body at a path. */
export function valueAt(body: JsonObject, path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (value, name) => (typeof value === "object" && value !== null && !Array.isArray(value) ? value[name] : undefined),
    body,
  );
}

function wordsOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
