import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call } from "../../src/kernel/call.ts";
import type { Conversation, ServedMethod } from "../../src/kernel/registry.ts";
import { Allowance } from "../../src/platform/allowance.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { asFailure } from "../../src/platform/errors.ts";
import { toProblem } from "../../src/platform/problem.ts";
import { validate } from "../../src/platform/validation.ts";

/**
 * Maximum responses that wait for a slow client. While the queue is full, the client's next message is not read. 16
 * chunks of a capture are 4 MiB.
 */
const maxQueued = 16;

/** Messages per second, and burst, of a duplex client. Further messages wait. */
const messagesPerSecond = 200;

/**
 * A faulty message of a client. `converse` draws the tokens of the message and responds with the fault; `relayed`
 * throws the fault.
 */
interface BrokenMessage {
  readonly broken: unknown;
  /** Message id set by the client; empty if unreadable. */
  readonly id: string;
}

/** An unparsed message. Its tokens are drawn before it is parsed. */
export interface UnreadMessage {
  readonly bytes: number;
  /**
   * Parses the message. Returns undefined if the message ends the client's side of the stream. Throws an error to end
   * the stream.
   */
  read(): Message | BrokenMessage | undefined;
}

type Answer = MessageInitShape<DescMessage>;

/** Message of a client to a bidirectional method, parsed or not. */
export type StreamInput = Message | UnreadMessage;

/** Bytes that one token pays for. A longer message draws one token per started block of this size. */
const bytesOfToken = 64 * 1024;

/** Returns the number of tokens that a message draws: 1 for a parsed message, because its size is unknown. */
const tokensOf = (received: StreamInput): number =>
  isUnread(received) ? Math.max(1, Math.ceil(received.bytes / bytesOfToken)) : 1;

// Generated messages may have fields called `bytes` and `read`, but only they have a type name.
const isUnread = (received: StreamInput): received is UnreadMessage => !("$typeName" in received);

const read = (received: StreamInput): Message | BrokenMessage | undefined =>
  isUnread(received) ? received.read() : received;

const isBroken = (read: Message | BrokenMessage): read is BrokenMessage => !("$typeName" in read);

const idOf = (message: Message | BrokenMessage) => ("id" in message ? { id: message.id } : {});

interface ConversationParts {
  readonly call: Call;
  readonly served: Extract<ServedMethod, { kind: "bidi_streaming" }>;
  readonly requests: AsyncIterable<StreamInput>;
  /** Waits until an unparsed message of this size may be parsed. */
  readonly awaitAllowance: (bytes: number) => Promise<void> | undefined;
  /**
   * Draws the tokens of a message before it is parsed. A failure such as `rate-limited` is reported as the message's
   * error.
   */
  readonly draw: (tokens: number) => Promise<void>;
  /** Throws if a message is invalid. The failure is reported as the message's error. */
  readonly check: (message: Message) => void;
  readonly errorsBase: string;
}

/** Runs a bidirectional method that relays or is duplex. The first message opens the stream, and is also relayed. */
export async function* relayed(
  call: Call,
  served: ConversationParts["served"],
  requests: AsyncIterable<StreamInput>,
  awaitAllowance: ConversationParts["awaitAllowance"],
): AsyncGenerator<Message> {
  const { input } = served.method;
  // Unread messages wait for the account's allowance. WebSocket frames arrive as messages: `ws/stream-relay.ts` limits
  // each connection.
  const messages = messagesOf(requests, awaitAllowance);
  const all = served.rules.duplex ? checked(messages, input, call.signal) : messages;
  const { value: first = create(input) } = await all.next();
  validate(input, first);
  const running = await served.run(call, first);
  if (!("relay" in running)) throw new Error(`${served.name} has the option relay or duplex but does not relay`);
  yield* running.relay(prepend(first, all));
}

/**
 * Yields the messages of a client. Before each message is parsed, waits for the allowance of the account. Throws at the
 * first faulty message.
 */
async function* messagesOf(
  requests: AsyncIterable<StreamInput>,
  awaitAllowance: ConversationParts["awaitAllowance"],
): AsyncGenerator<Message, undefined> {
  for await (const received of requests) {
    if (isUnread(received)) await awaitAllowance(received.bytes);
    const message = read(received);
    if (!message) return;
    if (isBroken(message)) throw message.broken;
    yield message;
  }
}

/**
 * Validates each message and delays the next to stay within `messagesPerSecond`. Throws at the first invalid message.
 */
async function* checked(
  messages: AsyncIterable<Message>,
  input: DescMessage,
  signal: AbortSignal,
): AsyncGenerator<Message, undefined> {
  const allowance = new Allowance(messagesPerSecond);
  for await (const message of messages) {
    validate(input, message);
    yield message;
    const waitMs = allowance.use(1, performance.now());
    if (waitMs >= 1) await sleep(waitMs, signal);
  }
}

async function* prepend(first: Message, rest: AsyncIterable<Message>): AsyncGenerator<Message> {
  yield first;
  yield* rest;
}

/**
 * Runs a bidirectional method. Draws tokens for each message, checks the message and responds, in order. The first
 * valid message opens the stream; the stream ends if it cannot be opened. A failed message is answered with an error
 * under its `id`, and the stream continues. The next message is read after the responses to the previous one, so that
 * the transport applies back-pressure.
 */
export async function* converse({
  call,
  served,
  requests,
  awaitAllowance,
  draw,
  check,
  errorsBase,
}: ConversationParts): AsyncGenerator<Message> {
  const outbox = new BoundedQueue<Message>({ items: maxQueued });
  const ended = new AbortController();
  const toMessage = (answer: Answer): Message => create(served.method.output, answer);
  let opened: Conversation<Message, Answer> | undefined;

  async function sendUnsolicited({ unsolicited: messages }: Conversation<Message, Answer>): Promise<void> {
    if (!messages) return;
    const signal = AbortSignal.any([call.signal, ended.signal]);
    for await (const message of messages(signal)) await outbox.push(toMessage(message));
  }

  /**
   * Handles one message. An error of the message is reported as its response; an error on opening ends the stream.
   * Returns false if the client has ended its side.
   */
  async function handle(received: StreamInput): Promise<boolean> {
    const refusal = await draw(tokensOf(received)).then(() => undefined, asFailure);
    if (isUnread(received)) await awaitAllowance(received.bytes);
    const message = read(received);
    if (!message) return false;
    const thrown = refusal ?? (isBroken(message) ? message.broken : faultOf(message));
    await (thrown === undefined && !isBroken(message) ? answer(message) : report(message, thrown));
    // Waits until a token is available before the next message is read, because refused messages are parsed too.
    if (refusal?.retryAfter !== undefined) await sleep(refusal.retryAfter * 1_000, call.signal);
    return true;
  }

  function faultOf(message: Message): unknown {
    try {
      check(message);
      return undefined;
    } catch (thrown) {
      return thrown;
    }
  }

  async function report(message: Message | BrokenMessage, thrown: unknown): Promise<void> {
    const error = toProblem(asFailure(thrown), errorsBase, call.requestId);
    await outbox.push(toMessage({ ...idOf(message), error }));
  }

  async function answer(message: Message): Promise<void> {
    if (!opened) {
      const running = await served.run(call, message);
      if ("relay" in running) throw new Error(`${served.name} relays without the option relay or duplex`);
      opened = running;
      // A failure is ignored here, because the responses to the client's own messages report errors.
      sendUnsolicited(opened).catch(() => undefined);
    }
    try {
      for await (const answer of opened.answer(message)) await outbox.push(toMessage({ ...answer, ...idOf(message) }));
    } catch (thrown) {
      await report(message, thrown);
    }
  }

  async function handleAll(): Promise<void> {
    for await (const received of requests) {
      if (!(await handle(received))) break;
      call.signal.throwIfAborted();
    }
    for await (const answer of opened?.finish?.() ?? []) await outbox.push(toMessage(answer));
  }

  handleAll().then(
    () => outbox.end(),
    (error: unknown) => outbox.fail(error),
  );
  try {
    yield* outbox;
  } finally {
    ended.abort();
  }
}
