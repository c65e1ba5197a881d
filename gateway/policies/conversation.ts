import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call } from "../../src/call.ts";
import { Allowance } from "../../src/platform/allowance.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { asFailure } from "../../src/platform/errors.ts";
import { toProblem } from "../../src/platform/problem.ts";
import { validate } from "../../src/platform/validation.ts";
import type { Conversation, ServedMethod } from "../../src/registry.ts";

/** Answers that wait for a slow client before its messages are held: 16 chunks of a capture are 4 MiB. */
const ahead = 16;

/** What a client of a duplex method may send in a second, and at once; then it is held. */
const messagesPerSecond = 200;

/** A message of a client that could not be read. It costs a token and is answered in its turn, as others are. */
export interface BrokenMessage {
  readonly broken: unknown;
  /** What the client calls it, as far as that could be read; else empty. */
  readonly id: string;
}

type Answer = MessageInitShape<DescMessage>;

/** What a client may send on the stream of a bidirectional method. */
export type Received = Message | BrokenMessage;

interface Parties {
  readonly call: Call;
  readonly served: Extract<ServedMethod, { kind: "bidi_streaming" }>;
  readonly requests: AsyncIterable<Received>;
  /** Draws the token of a message, and gives it when it is valid. Throws what is wrong: that is the message's error. */
  readonly admit: (received: Received) => Promise<Message>;
  readonly errorsBase: string;
}

/** Runs a bidirectional method that relays, or is duplex: its first message opens it, and is one of those that it is handed. */
export async function* relayed(
  call: Call,
  served: Parties["served"],
  requests: AsyncIterable<Received>,
): AsyncGenerator<Message> {
  const { input } = served.method;
  const all = served.rules.duplex ? checked(messagesOf(requests), input, call.signal) : messagesOf(requests);
  const { value: first = create(input) } = await all.next();
  validate(input, first);
  const running = await served.run(call, first);
  if (!("relay" in running)) throw new Error(`${served.name} converses, and says that it does not`);
  yield* running.relay(following(first, all));
}

async function* messagesOf(requests: AsyncIterable<Received>): AsyncGenerator<Message, undefined> {
  for await (const received of requests) {
    if ("broken" in received) throw received.broken;
    yield received;
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
export async function* converse({ call, served, requests, admit, errorsBase }: Parties): AsyncGenerator<Message> {
  const outbox = new BoundedQueue<Message>({ items: ahead });
  const over = new AbortController();
  const toMessage = (answer: Answer): Message => create(served.method.output, answer);
  let opened: Conversation<Message, Answer> | undefined;

  async function tell({ tell: messages }: Conversation<Message, Answer>): Promise<void> {
    if (!messages) return;
    const signal = AbortSignal.any([call.signal, over.signal]);
    for await (const message of messages(signal)) await outbox.push(toMessage(message));
  }

  /** What is wrong with one message, or becomes of it, ends it alone; what is wrong with opening ends the stream. */
  async function take(received: Received): Promise<void> {
    const named = "id" in received ? { id: received.id } : {};
    const report = async (thrown: unknown): Promise<void> => {
      const error = toProblem(asFailure(thrown), errorsBase, call.requestId);
      await outbox.push(toMessage({ ...named, error }));
    };
    const message = await admit(received).catch(async (thrown: unknown) => {
      await report(thrown);
      // Who sends what cannot be read pays in time when there is no token left.
      if ("broken" in received) await sleep((asFailure(thrown).retryAfter ?? 0) * 1_000, call.signal);
    });
    if (!message) return;
    if (!opened) {
      const running = await served.run(call, message);
      if ("relay" in running) throw new Error(`${served.name} relays, and says so in no option`);
      opened = running;
      // The answers to the client's own messages say what has gone wrong.
      tell(opened).catch(() => undefined);
    }
    try {
      for await (const answer of opened.answer(message)) await outbox.push(toMessage({ ...answer, ...named }));
    } catch (thrown) {
      await report(thrown);
    }
  }

  async function takeAll(): Promise<void> {
    for await (const received of requests) {
      await take(received);
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
