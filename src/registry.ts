import {
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import type { Call } from "./call.ts";
import { type MethodRules, rules } from "./gen/pilothouse/v1/options_pb.ts";

type In<M extends { input: DescMessage }> = MessageShape<M["input"]>;
type Out<M extends { output: DescMessage }> = MessageShape<M["output"]>;

/** How a method of one kind is implemented. */
export type MethodImplementation<M extends GenServiceMethods[string]> = M["methodKind"] extends "unary"
  ? (call: Call, request: In<M>) => Promise<Out<M>>
  : M["methodKind"] extends "server_streaming"
    ? (call: Call, request: In<M>) => AsyncIterable<Out<M>>
    : M["methodKind"] extends "bidi_streaming"
      ? (call: Call, requests: AsyncIterable<In<M>>) => AsyncIterable<Out<M>>
      : never;

/** An implementation of every method of a service. */
export type ServiceImplementation<S> =
  S extends GenService<infer Methods> ? { readonly [K in keyof Methods]: MethodImplementation<Methods[K]> } : never;

interface Served<Kind, Method extends DescMethod> {
  readonly kind: Kind;
  readonly method: Method;
  /** The method's own options. */
  readonly rules: MethodRules;
}

/** One method of the registry: its descriptor, its rules and what runs it. Transports and policies know nothing else. */
export type ServedMethod =
  | (Served<"unary", DescMethodUnary> & { run(call: Call, request: Message): Promise<Message> })
  | (Served<"server_streaming", DescMethodServerStreaming> & {
      run(call: Call, request: Message): AsyncIterable<Message>;
    })
  | (Served<"bidi_streaming", DescMethodBiDiStreaming> & {
      run(call: Call, requests: AsyncIterable<Message>): AsyncIterable<Message>;
    });

/** A service of the registry. */
export interface ServedService {
  readonly service: DescService;
  readonly methods: readonly ServedMethod[];
}

/** Pairs a service's descriptor with its implementation. */
export function serve<Methods extends GenServiceMethods>(
  service: GenService<Methods>,
  implementation: ServiceImplementation<GenService<Methods>>,
): ServedService {
  // The boundary where per-method types become one: descriptor and implementation are known to agree here, and only here.
  const implementations = implementation as unknown as Record<string, (call: Call, input: unknown) => unknown>;
  const methods = service.methods.map((method) => {
    const run = implementations[method.localName];
    if (!run) {
      throw new Error(`${service.typeName}.${method.name} has no implementation`);
    }
    if (method.methodKind === "client_streaming") {
      throw new Error(`${service.typeName}.${method.name}: client streaming is not served; make it bidirectional`);
    }
    return { kind: method.methodKind, method, rules: getOption(method, rules), run } as ServedMethod;
  });
  return { service, methods };
}
