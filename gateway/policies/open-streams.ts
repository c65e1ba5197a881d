import type { Message } from "@bufbuild/protobuf";
import { Gauge, type Registry } from "prom-client";
import type { BearerState } from "../../src/identity/bearer-watch.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../gateway-call.ts";
import { permission } from "./permission.ts";
import type { Policy, PolicyParts } from "./policy.ts";

/**
 * Maximum number of open streams per account, per session, and per client address (public streams), over all gateways.
 */
const max = { account: 256, session: 16, address: 100 };

/** `Retry-After` for an address with too many streams, in seconds. */
const retryAfterSeconds = 60;

const stopped = Symbol("stopped");

/** Limits unbounded streams (subscriptions and bidirectional streams). Streams are counted while they run. */
export const streamLimits: Policy = {
  name: "open streams",
  enforces: ["follows"],
  appliesTo: ({ rules, kind }) => rules.follows || kind === "bidi_streaming",
  problems: ({ rules }) => (rules.public ? ["rate-limited"] : ["tier-limit"]),
};

/** Opens a stream and returns its responses. The signal aborts when no more requests may be read. */
type Open = (noMoreRequests: AbortSignal) => AsyncIterable<Message>;

/** Open streams of a gateway, of all transports. A stream ends when its bearer becomes invalid. */
export interface OpenStreams {
  /** Number of open streams. */
  readonly size: number;
  /**
   * Yields the messages of a stream. If the bearer becomes invalid, throws the problem that a new request would
   * receive.
   */
  run(call: GatewayCall, open: Open): AsyncGenerator<Message>;
  /**
   * Counts a public stream whose messages do not pass through `run`. Throws `rate-limited` if the client address has
   * too many streams. Calls `end` when the gateway stops. Resolves with a function that stops counting the stream.
   */
  slot(call: GatewayCall, end: () => void): Promise<() => void>;
  /**
   * Ends subscriptions at once. Bidirectional streams read no more messages, and end after the responses to the
   * messages already read.
   */
  stop(): void;
}

interface Stream {
  /** Ends the responses with the abort reason as the error. */
  readonly end: AbortController;
  readonly noMoreRequests: AbortController;
}

/** Ends a stream when the gateway stops. */
type Stop = () => void;

/** Creates the registry of open streams. */
export function createOpenStreams(parts: PolicyParts, registry: Registry): OpenStreams {
  const all = new Set<Stop>();
  const openStreams = new Gauge({
    name: "pilothouse_open_streams",
    help: "Streams that are open, over all transports.",
    labelNames: ["method"],
    registers: [registry],
  });

  /** Applies a new state of the bearer. Ends the stream if the bearer is invalid or has lost the permission. */
  function applyBearerState(call: GatewayCall, { end }: Stream, state: BearerState): void {
    if ("failure" in state) {
      end.abort(state.failure);
      return;
    }
    call.principal = state.principal;
    try {
      if (permission.appliesTo(call.served)) permission.admit(call, parts);
    } catch (thrown) {
      end.abort(thrown);
    }
  }

  async function takeSlot(whose: keyof typeof max, owner: string): Promise<() => void> {
    const limit = max[whose];
    const slot = await parts.streamSlots.take(owner, limit);
    if (slot.isGranted) return slot.release;
    const detail = `the ${whose} has ${slot.taken} open streams, the maximum: close one first`;
    throw fail("tier-limit", { current_streams: slot.taken, limit }, { detail });
  }

  async function takeSlotOfAddress({ clientAddress }: GatewayCall): Promise<() => void> {
    const network = networkOf(clientAddress, { v4: 32, v6: 64 });
    const slot = await parts.streamSlots.take(`address ${network}`, max.address);
    if (slot.isGranted) return slot.release;
    const detail = `your address has ${slot.taken} open streams, the maximum: close one first`;
    throw fail("rate-limited", { retry_after_seconds: retryAfterSeconds }, { detail, retryAfter: retryAfterSeconds });
  }

  /** Counts a public stream for the address of its client. */
  function countOfAddress(call: GatewayCall, end: AbortController) {
    const isCounted = takeSlotOfAddress(call);
    isCounted.catch((refusal) => end.abort(refusal));
    return {
      isCounted,
      release: () =>
        void isCounted.then(
          (release) => release(),
          () => undefined,
        ),
    };
  }

  /**
   * Counts a stream for its account and for each session that it joins. A refusal for the account ends the stream; a
   * refusal for a session rejects `joinSession`. Returns a promise for the account's slot, and a function that releases
   * all slots.
   */
  function count(call: GatewayCall, { end }: Stream): { isCounted: Promise<unknown>; release(): void } {
    if (call.served.rules.public) return countOfAddress(call, end);
    const { accountId } = call.principal;
    const isCounted = takeSlot("account", accountId);
    isCounted.catch((refusal) => end.abort(refusal));
    const streamSlots = new Map([["", isCounted]]);
    call.setJoinSession(async (sessionId) => {
      // The key includes the account because the method has not yet verified who owns the session.
      if (!streamSlots.has(sessionId)) streamSlots.set(sessionId, takeSlot("session", `${accountId} ${sessionId}`));
      await Promise.all(streamSlots.values());
    });
    return {
      isCounted,
      release() {
        // The method may still be about to join a session.
        call.setJoinSession(undefined);
        for (const slot of streamSlots.values())
          slot.then(
            (release) => release(),
            () => undefined,
          );
      },
    };
  }

  return {
    get size() {
      return all.size;
    },
    async *run(call, open) {
      const { rules, name } = call.served;
      const stream = { end: new AbortController(), noMoreRequests: new AbortController() };
      const counted = streamLimits.appliesTo(call.served) ? count(call, stream) : undefined;
      const { bearer } = call;
      const unwatch = bearer && parts.bearers.watch(bearer, (state) => applyBearerState(call, stream, state));
      const stop = (): void => (rules.follows ? stream.end : stream.noMoreRequests).abort(stopped);
      all.add(stop);
      openStreams.inc({ method: name });
      try {
        const answers = open(stream.noMoreRequests.signal);
        yield* untilAborted(counted ? after(counted.isCounted, answers) : answers, stream.end.signal);
      } finally {
        openStreams.dec({ method: name });
        all.delete(stop);
        unwatch?.();
        counted?.release();
        call.cancel();
      }
    },
    async slot(call, end) {
      const release = await takeSlotOfAddress(call);
      const { name } = call.served;
      all.add(end);
      openStreams.inc({ method: name });
      return () => {
        if (!all.delete(end)) return;
        openStreams.dec({ method: name });
        release();
      };
    },
    stop() {
      for (const stop of all) stop();
    },
  };
}

/** Yields the items of a source after another promise has resolved. The source starts at once. */
async function* after<T>(other: Promise<unknown>, source: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const item of source) {
    await other;
    yield item;
  }
}

/** Yields the items of a source until the signal aborts. Then throws the reason, or returns if the gateway stops. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const result = await raceSignal(iterator.next(), signal);
      if (result.done) return;
      yield result.value;
    }
  } catch (thrown) {
    if (thrown !== stopped) throw thrown;
  } finally {
    // Not awaited: a source resolves `return` only after its pending item.
    void iterator.return?.();
  }
}
