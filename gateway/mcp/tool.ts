import type { DescMethodUnary, JsonObject, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Principal } from "../../src/kernel/call.ts";

/** Context of one tool call: its signals, its client, and access to methods. */
export interface ToolContext {
  /** Aborts when the client has closed the response. */
  readonly closed: AbortSignal;
  /** Aborts when the client has closed the response, the time for the call is over, or the gateway stops. */
  readonly signal: AbortSignal;
  readonly publicUrl: string;
  readonly principal: Principal;
  /** Returns a header of the request. */
  header(name: string): string | undefined;
  /** Whether the client can show a link of a result (`ask`) to its user. */
  readonly opensLinks: boolean;
  /** The user's answer to the link of an earlier result: the `state` of its `ask`, and whether the user agreed. */
  readonly answered: { readonly state: string; readonly isAccepted: boolean } | undefined;
  /** Calls a method as the client, through all policies. With `isKept`, the call continues when `signal` aborts. */
  call<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M["input"]>,
    options?: { readonly isKept?: boolean },
  ): Promise<MessageShape<M["output"]>>;
}

export interface ToolResult {
  /** Result as described by the output schema. */
  readonly structured: JsonObject;
  /** Result for the model. Default: the JSON of `structured`. */
  readonly text?: string;
  /** JPEG picture. */
  readonly picture?: Uint8Array;
  readonly links?: readonly { readonly name: string; readonly uri: string }[];
  /** Link to show to the user before the call is repeated with `state`, if the client can show links. */
  readonly ask?: { readonly url: string; readonly message: string; readonly state: string };
}

/** JSON Schema of a property. */
export type PropertySchema = Readonly<Record<string, unknown>>;

type ValueOf<S> = S extends { readonly enum: readonly (infer E)[] }
  ? E
  : S extends { readonly type: "string" }
    ? string
    : S extends { readonly type: "integer" }
      ? number
      : S extends { readonly type: "boolean" }
        ? boolean
        : S extends { readonly type: "array" }
          ? readonly unknown[]
          : S extends { readonly additionalProperties: { readonly type: "string" } }
            ? Readonly<Record<string, string>>
            : JsonObject;

/** Arguments of a tool, as its schema describes them. */
type Arguments<P, R extends keyof P> = { readonly [K in R]: ValueOf<P[K]> } & {
  readonly [K in Exclude<keyof P, R>]?: ValueOf<P[K]>;
};

interface ToolFields {
  readonly name: string;
  readonly description: string;
  /** Properties of the structured result. */
  readonly output: Readonly<Record<string, PropertySchema>>;
  /**
   * `readOnly`: the tool changes nothing. `destructive`: it may destroy something. `idempotent`: a repeated call has no
   * further effect.
   */
  readonly hints: { readonly readOnly?: true; readonly destructive?: true; readonly idempotent?: true };
}

/** A tool of the MCP server. */
export interface Tool extends ToolFields {
  readonly input: Readonly<Record<string, PropertySchema>>;
  readonly required: readonly string[];
  run(context: ToolContext, args: JsonObject): Promise<ToolResult>;
}

/** Defines a tool. Its arguments have the types of its schema, against which the server has validated them. */
export function defineTool<const P extends Readonly<Record<string, PropertySchema>>, const R extends keyof P & string>(
  tool: ToolFields & {
    readonly input: P;
    readonly required: readonly R[];
    run(context: ToolContext, args: Arguments<P, R>): Promise<ToolResult>;
  },
): Tool {
  // Erases the types of the arguments, which the server validates.
  return tool as unknown as Tool;
}

const describe = <T extends string>(type: T, description: string) => ({ type, description }) as const;

/** Returns the JSON Schema of a string. */
export const text = (description: string) => describe("string", description);
export const integer = (description: string, minimum: number, maximum: number) =>
  ({ type: "integer", description, minimum, maximum }) as const;
export const choice = <const E extends string>(description: string, ...values: E[]) =>
  ({ type: "string", enum: values, description }) as const;

/** Argument of every tool that requires a session. */
export const sessionId = { session_id: { type: "string" } } as const;

/** Properties of the result of a tool that shows the page. */
export const pageOutput = { outcome: { type: "string" }, page: { type: "string" } } as const;

/** Properties of the result of a tool whose work may continue after the call. */
export const progressOutput = {
  status: { type: "string" },
  handle: { type: "string" },
  next: { type: "string" },
} as const;
