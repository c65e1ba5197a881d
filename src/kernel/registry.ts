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

/** What a bidirectional method is once the first message of its client has opened it. */
export interface Conversation<In, Answer> {
  /**
   * Answers one message, which is valid and has drawn its token. The next is taken when this one's last answer was; what
   * it throws is the error of this message, and the stream goes on.
   */
  answer(message: In): AsyncIterable<Answer>;
  /** Answers what is left to be answered when the client has sent its last message. */
  finish?(): AsyncIterable<Answer>;
  /** What the client is told unasked. It ends, and nobody is told when it fails. */
  tell?(signal: AbortSignal): AsyncIterable<Answer>;
}

/** What a bidirectional method with the option `relay` or `duplex` is once its first message has opened it. */
export interface Relay<In, Out> {
  /** Takes all messages and gives others, until one side ends; what it throws ends both. */
  relay(messages: AsyncIterable<In>): AsyncIterable<Out>;
}

/** How a method of one kind is implemented. */
export type MethodImplementation<M extends GenServiceMethods[string]> = M["methodKind"] extends "unary"
  ? (call: Call, request: In<M>) => Promise<Out<M>>
  : M["methodKind"] extends "server_streaming"
    ? (call: Call, request: In<M>) => AsyncIterable<Out<M>>
    : M["methodKind"] extends "bidi_streaming"
      ? (call: Call, first: In<M>) => Promise<Conversation<In<M>, MessageInitShape<M["output"]>> | Relay<In<M>, Out<M>>>
      : never;

/** An implementation of every method of a service. */
export type ServiceImplementation<S> =
  S extends GenService<infer Methods> ? { readonly [K in keyof Methods]: MethodImplementation<Methods[K]> } : never;

interface Served<Kind, Method extends DescMethod> {
  readonly kind: Kind;
  readonly method: Method;
  /** `SessionService.Create`, for people. */
  readonly name: string;
  /** The method's own options. */
  readonly rules: MethodRules;
  /** How REST reaches it; undefined where it does not. */
  readonly route: HttpRoute | undefined;
  /** Its answers are kept for an Idempotency-Key: it is a POST that changes the account's things. */
  readonly keepsAnswers: boolean;
  /** Its answers may hold a secret, which is never stored but sealed. */
  readonly answersSecrets: boolean;
  /** Of a method that follows something: the field that names the event after which it goes on. */
  readonly resumesAfter: DescField | undefined;
}

/** One method of the registry: its descriptor, its rules and what runs it. Transports and policies know nothing else. */
export type ServedMethod =
  | (Served<"unary", DescMethodUnary> & { run(call: Call, request: Message): Promise<Message> })
  | (Served<"server_streaming", DescMethodServerStreaming> & {
      run(call: Call, request: Message): AsyncIterable<Message>;
    })
  | (Served<"bidi_streaming", DescMethodBiDiStreaming> & {
      run(
        call: Call,
        first: Message,
      ): Promise<Conversation<Message, MessageInitShape<DescMessage>> | Relay<Message, Message>>;
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
    if (!run) throw new Error(`${service.typeName}.${method.name} has no implementation`);
    if (method.methodKind === "client_streaming") {
      throw new Error(`${service.typeName}.${method.name}: client streaming is not served; make it bidirectional`);
    }
    return { kind: method.methodKind, method, run, ...factsOf(method) } as ServedMethod;
  });
  return { service, methods };
}

/** What policies and transports know of a method beside its descriptor: all of it is found out here, once. */
function factsOf(method: DescMethod): Omit<Served<never, never>, "kind" | "method"> {
  const options = getOption(method, rules);
  const route = httpRouteOf(method);
  const isPost = method.methodKind === "unary" && route?.verb === "POST";
  if (options.follows && method.methodKind !== "server_streaming")
    throw new Error(`${method}: only a server stream can follow something`);
  const converses = method.methodKind === "bidi_streaming" && !options.relay && !options.duplex;
  if (converses && !method.output.fields.some(({ name }) => name === "error"))
    throw new Error(`${method}: the answers of a bidirectional method need a field "error" for messages that fail`);
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const given = isRead || options.grants ? undefined : findSecret(method.output, ({ name }) => grantName.test(name));
  if (given) throw new Error(`${method}: its answer has ${given}, but it lacks the option grants`);
  return {
    name: `${method.parent.name}.${method.name}`,
    rules: options,
    route,
    keepsAnswers: isPost && !options.public && options.idempotency === Idempotency.UNSPECIFIED,
    answersSecrets: findSecret(method.output) !== undefined,
    resumesAfter: options.follows ? method.input.fields.find(({ name }) => name === "after_event_id") : undefined,
  };
}

/** What fields are called that let whoever has them act. */
const grantName = /(^|_)(key|token|secret|url)$/;

/** Finds a field of a message, however deep, that holds a secret and is a wanted one. */
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
