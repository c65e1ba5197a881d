import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Idempotency, type MethodRules, rules } from "../gen/pilothouse/v1/options_pb.ts";
import type { Call } from "./call.ts";
import { type HttpRoute, httpRouteOf } from "./http-route.ts";

type In<M extends { input: DescMessage }> = MessageShape<M["input"]>;
type Out<M extends { output: DescMessage }> = MessageShape<M["output"]>;

/** Handles the client's messages after the first message of a bidirectional method. */
export interface Conversation<In, Answer> {
  /**
   * Responds to one message. The gateway has already validated and rate-limited the message. The next message is read
   * after the last response was consumed. A thrown error becomes this message's error, and the stream continues.
   */
  answer(message: In): AsyncIterable<Answer>;
  /** Yields the remaining responses after the client's last message. */
  finish?(): AsyncIterable<Answer>;
  /** Yields unsolicited messages to the client. A failure ends these messages without an error. */
  unsolicited?(signal: AbortSignal): AsyncIterable<Answer>;
}

/** State of a bidirectional method with the option `relay` or `duplex` after its first message. */
export interface StreamRelay<In, Out> {
  /** Relays messages in both directions until one side ends. A thrown error ends both. */
  relay(messages: AsyncIterable<In>): AsyncIterable<Out>;
}

/** Implementation of a method by kind. */
export type MethodImplementation<M extends GenServiceMethods[string]> = M["methodKind"] extends "unary"
  ? (call: Call, request: In<M>) => Promise<Out<M>>
  : M["methodKind"] extends "server_streaming"
    ? (call: Call, request: In<M>) => AsyncIterable<Out<M>>
    : M["methodKind"] extends "bidi_streaming"
      ? (
          call: Call,
          first: In<M>,
        ) => Promise<Conversation<In<M>, MessageInitShape<M["output"]>> | StreamRelay<In<M>, Out<M>>>
      : never;

/** Implementation of all methods of a service. */
export type ServiceImplementation<S> =
  S extends GenService<infer Methods> ? { readonly [K in keyof Methods]: MethodImplementation<Methods[K]> } : never;

interface Served<Kind, Method extends DescMethod> {
  readonly kind: Kind;
  readonly method: Method;
  /** Display name, such as `SessionService.Create`. */
  readonly name: string;
  readonly rules: MethodRules;
  readonly route: HttpRoute | undefined;
  /**
   * Whether responses are stored for an Idempotency-Key. Applies to unary POST methods, unless they are public or their
   * option `idempotency` is set.
   */
  readonly keepsAnswers: boolean;
  /** Whether responses may contain a secret. Caches must not store such responses. */
  readonly answersSecrets: boolean;
  /** Request field with the event after which a watch continues. */
  readonly resumesAfter: DescField | undefined;
}

/** A method with its descriptor, options and implementation. Transports and policies depend on this type only. */
export type ServedMethod =
  | (Served<"unary", DescMethodUnary> & { run(call: Call, request: Message): Promise<Message> })
  | (Served<"server_streaming", DescMethodServerStreaming> & {
      run(call: Call, request: Message): AsyncIterable<Message>;
    })
  | (Served<"bidi_streaming", DescMethodBiDiStreaming> & {
      run(
        call: Call,
        first: Message,
      ): Promise<Conversation<Message, MessageInitShape<DescMessage>> | StreamRelay<Message, Message>>;
    });

export interface ServedService {
  readonly service: DescService;
  readonly methods: readonly ServedMethod[];
}

/** Pairs a service's descriptor with its implementation. */
export function serve<Methods extends GenServiceMethods>(
  service: GenService<Methods>,
  implementation: ServiceImplementation<GenService<Methods>>,
): ServedService {
  // Erases the per-method types. The parameters ensure that descriptor and implementation match.
  const implementations = implementation as unknown as Record<string, (call: Call, input: unknown) => unknown>;
  const methods = service.methods.map((method) => {
    const run = implementations[method.localName];
    if (!run) throw new Error(`${service.typeName}.${method.name} has no implementation`);
    if (method.methodKind === "client_streaming") {
      throw new Error(
        `${service.typeName}.${method.name}: client streaming is not supported; make the method bidirectional`,
      );
    }
    return { kind: method.methodKind, method, run, ...factsOf(method) } as ServedMethod;
  });
  return { service, methods };
}

/** Derives the facts about a method that policies and transports need. */
function factsOf(method: DescMethod): Omit<Served<never, never>, "kind" | "method"> {
  const options = getOption(method, rules);
  const route = httpRouteOf(method);
  const isPost = method.methodKind === "unary" && route?.verb === "POST";
  if (options.follows && method.methodKind !== "server_streaming")
    throw new Error(`${method}: expected a server stream, because of the option follows`);
  const converses = method.methodKind === "bidi_streaming" && !options.relay && !options.duplex;
  if (converses && !method.output.fields.some(({ name }) => name === "error"))
    throw new Error(`${method}: responses of a bidirectional method need a field "error" for failed messages`);
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const given = isRead || options.grants ? undefined : findSecret(method.output, ({ name }) => grantName.test(name));
  if (given) throw new Error(`${method}: its response contains ${given}, so it needs the option grants`);
  return {
    name: `${method.parent.name}.${method.name}`,
    rules: options,
    route,
    keepsAnswers: isPost && !options.public && options.idempotency === Idempotency.UNSPECIFIED,
    answersSecrets: findSecret(method.output) !== undefined,
    resumesAfter: options.follows ? method.input.fields.find(({ name }) => name === "after_event_id") : undefined,
  };
}

/** Matches the names of fields that grant access if they are secret. */
const grantName = /(^|_)(key|token|secret|url)$/;

/** Finds a secret field (option `debug_redact`) of a message, at any depth, that matches `isWanted`. */
function findSecret(
  message: DescMessage,
  isWanted: (field: DescField) => boolean = () => true,
  seen = new Set<DescMessage>(),
): DescField | undefined {
  if (seen.has(message)) return undefined;
  seen.add(message);
  for (const field of message.fields) {
    if (field.proto.options?.debugRedact === true && isWanted(field)) return field;
    const inner = field.fieldKind === "scalar" || field.fieldKind === "enum" ? undefined : field.message;
    const found = inner && findSecret(inner, isWanted, seen);
    if (found) return found;
  }
  return undefined;
}
