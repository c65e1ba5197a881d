import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call } from "../../src/kernel/call.ts";
import type { Conversation, ServedMethod } from "../../src/kernel/registry.ts";
import { Allowance } from "../../src/platform/allowance.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { asFailure } from "../../src/platform/errors.ts";
import { toProblem } from "../../src/platform/problem.ts";
import { validate } from "../../src/platform/validation.ts";

/** Limits of all relayed and duplex streams of an account at one gateway, per second and as a burst. */
const ofAccount = { messages: 2_000, bytes: 4 * 2 ** 20 };

/** The allowance of an account for its relayed and duplex streams. */
interface StreamAllowance {
  /** Takes note of a message; returns the milliseconds to wait before it is parsed. */
  use(bytes: number): number;
}

/** Creates what runs streams with the allowance of their account, which is forgotten with its last stream. */
export function createStreamAllowances() {
  const open = new Map<string, { readonly allowance: StreamAllowance; streams: number }>();
  return async function* <T>(
    accountId: string,
    run: (allowance: StreamAllowance) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const entry = open.get(accountId) ?? { allowance: createStreamAllowance(), streams: 0 };
    entry.streams += 1;
    open.set(accountId, entry);
    try {
      yield* run(entry.allowance);
    } finally {
      entry.streams -= 1;
      if (entry.streams === 0) open.delete(accountId);
    }
  };
}

function createStreamAllowance(): StreamAllowance {
  const messages = new Allowance(ofAccount.messages);
  const bytes = new Allowance(ofAccount.bytes);
  return {
    use(size) {
      const now = performance.now();
      return Math.max(messages.use(1, now), bytes.use(size, now));
    },
  };
}

/** Answers that wait for a slow client before its messages are held: 16 chunks of a capture are 4 MiB. */
const ahead = 16;

/** What a client of a duplex method may send in a second, and at once; then it is held. */
const messagesPerSecond = 200;

/** A message of a client that has faults. It costs a token and is answered in its turn, as others are. */
interface BrokenMessage {
  readonly broken: unknown;
  /** What the client calls it, as far as that could be read; else empty. */
  readonly id: string;
}

/** A message of a client that was not parsed yet: what that costs is drawn first. */
export interface UnreadMessage {
  readonly bytes: number;
  /** Returns undefined when the client ends its side by the message. Throws what ends the stream. */
  read(): Message | BrokenMessage | undefined;
}

type Answer = MessageInitShape<DescMessage>;

/** What a client may send on the stream of a bidirectional method. */
export type Received = Message | UnreadMessage;

/** Bytes of a message that its token pays for. A longer message draws a token for each as many. */
const bytesOfToken = 64 * 1024;

/** Returns how many tokens a message draws. Of one that its transport has parsed, the size is not known. */
const tokensOf = (received: Received): number =>
  isUnread(received) ? Math.max(1, Math.ceil(received.bytes / bytesOfToken)) : 1;

// A message of a generated type may have fields of these names, but always has a type name.
const isUnread = (received: Received): received is UnreadMessage => !("$typeName" in received);

const read = (received: Received): Message | BrokenMessage | undefined =>
  isUnread(received) ? received.read() : received;

const isBroken = (read: Message | BrokenMessage): read is BrokenMessage => !("$typeName" in read);

const nameOf = (message: Message | BrokenMessage) => ("id" in message ? { id: message.id } : {});

interface Parties {
  readonly call: Call;
  readonly served: Extract<ServedMethod, { kind: "bidi_streaming" }>;
  readonly requests: AsyncIterable<Received>;
  /** Draws the tokens of a message before it is parsed. Throws `rate-limited`: that is the message's error. */
  readonly draw: (tokens: number) => Promise<void>;
  /** Throws what is wrong with a message: that is its error. */
  readonly check: (message: Message) => void;
  readonly errorsBase: string;
}

/** Runs a bidirectional method that relays, or is duplex: its first message opens it, and is one of those that it is handed. */
export async function* relayed(
  call: Call,
  served: Parties["served"],
  requests: AsyncIterable<Received>,
  allowance: StreamAllowance,
): AsyncGenerator<Message> {
  const { input } = served.method;
  const { duplex } = served.rules;
  // Messages that a door relays unparsed are limited there, per connection.
  const heldFor = (received: Received): number =>
    isUnread(received) ? allowance.use(received.bytes) : duplex ? allowance.use(0) : 0;
  const messages = messagesOf(requests, heldFor, call.signal);
  const all = duplex ? checked(messages, input, call.signal) : messages;
  const { value: first = create(input) } = await all.next();
  validate(input, first);
  const running = await served.run(call, first);
  if (!("relay" in running)) throw new Error(`${served.name} converses, and says that it does not`);
  yield* running.relay(following(first, all));
}

/** The messages of a client, each parsed when the allowance of its account has room for it. */
async function* messagesOf(
  requests: AsyncIterable<Received>,
  heldFor: (received: Received) => number,
  signal: AbortSignal,
): AsyncGenerator<Message, undefined> {
  for await (const received of requests) {
    const waitMs = heldFor(received);
    if (waitMs >= 1) await sleep(waitMs, signal);
    const message = read(received);
    if (!message) return;
    if (isBroken(message)) throw message.broken;
    yield message;
  }
}

/** Messages that are valid, and no more of them in a second than may come. */
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

async function* following(first: Message, rest: AsyncIterable<Message>): AsyncGenerator<Message> {
  yield first;
  yield* rest;
}

/**
 * Runs a bidirectional method: the first good message opens it, then one message after the other is admitted and
 * answered. The next is taken only when the one before it has been answered: the transport reads a little ahead and then
 * holds the client. A message that fails is answered with its error, under its `id`, and the stream goes on.
 */
export async function* converse({ call, served, requests, draw, check, errorsBase }: Parties): AsyncGenerator<Message> {
  const outbox = new BoundedQueue<Message>({ items: ahead });
  const over = new AbortController();
  const toMessage = (answer: Answer): Message => create(served.method.output, answer);
  let opened: Conversation<Message, Answer> | undefined;

  async function tell({ tell: messages }: Conversation<Message, Answer>): Promise<void> {
    if (!messages) return;
    const signal = AbortSignal.any([call.signal, over.signal]);
    for await (const message of messages(signal)) await outbox.push(toMessage(message));
  }

  /**
   * What is wrong with one message, or becomes of it, ends it alone; what is wrong with opening ends the stream. Returns
   * false when the client has ended its side.
   */
  async function take(received: Received): Promise<boolean> {
    const refusal = await draw(tokensOf(received)).then(() => undefined, asFailure);
    const message = read(received);
    if (!message) return false;
    const thrown = refusal ?? (isBroken(message) ? message.broken : faultOf(message));
    await (thrown === undefined && !isBroken(message) ? answer(message) : report(message, thrown));
    // The stream is not read before there is a token again: each refused message has been parsed.
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
    await outbox.push(toMessage({ ...nameOf(message), error }));
  }

  async function answer(message: Message): Promise<void> {
    if (!opened) {
      const running = await served.run(call, message);
      if ("relay" in running) throw new Error(`${served.name} relays, and says so in no option`);
      opened = running;
      // The answers to the client's own messages say what has gone wrong.
      tell(opened).catch(() => undefined);
    }
    try {
      for await (const answer of opened.answer(message))
        await outbox.push(toMessage({ ...answer, ...nameOf(message) }));
    } catch (thrown) {
      await report(message, thrown);
    }
  }

  async function takeAll(): Promise<void> {
    for await (const received of requests) {
      if (!(await take(received))) break;
      call.signal.throwIfAborted();
    }
    for await (const answer of opened?.finish?.() ?? []) await outbox.push(toMessage(answer));
  }

  takeAll().then(
    () => outbox.end(),
    (error: unknown) => outbox.fail(error),
  );
  try {
    yield* outbox;
  } finally {
    over.abort();
  }
}
