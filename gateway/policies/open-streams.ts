import type { Message } from "@bufbuild/protobuf";
import { Gauge, type Registry } from "prom-client";
import type { Verdict } from "../../src/identity/bearer-watch.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../call.ts";
import { permission } from "./permission.ts";
import type { Policy, PolicyParts } from "./policy.ts";

/** The most streams of one owner, on all gateways. */
const most = { account: 256, session: 16, address: 100 };

/** Seconds after which an address that has too many is to try again. */
const tryAgainAfter = 60;

const stopped = Symbol("stopped");

/** Bounds the streams that last: those that follow something, and those that converse. They are counted as they run. */
export const streamLimits: Policy = {
  name: "open streams",
  enforces: ["follows"],
  concerns: ({ rules, kind }) => rules.follows || kind === "bidi_streaming",
  refuses: ({ rules }) => (rules.public ? ["rate-limited"] : ["tier-limit"]),
};

/** Opens the answers of a stream. The signal aborts when its client is no longer to be read from. */
type Open = (noMoreRequests: AbortSignal) => AsyncIterable<Message>;

/** The streams of a gateway, on whatever door. They end with the bearer that opened them. */
export interface OpenStreams {
  /** Gives the messages of a stream; throws the problem that a request would get once its bearer has ended. */
  run(call: GatewayCall, open: Open): AsyncGenerator<Message>;
  /**
   * Counts a stream for which no bearer is asked, and which its door runs by itself; throws when its address has too many.
   * Gives what forgets it; `end` is called when it would last for ever.
   */
  seat(call: GatewayCall, end: () => void): Promise<() => void>;
  /** Ends what would last for ever: what follows something ends, what answers a client finishes what it has read. */
  stop(): void;
}

interface Stream {
  /** Ends the answers with its reason. */
  readonly end: AbortController;
  readonly noMoreRequests: AbortController;
}

/** What ends a stream when the gateway stops. */
type Stop = () => void;

/** Makes the streams of a gateway. */
export function createOpenStreams(parts: PolicyParts, registry: Registry): OpenStreams {
  const all = new Set<Stop>();
  const openStreams = new Gauge({
    name: "pilothouse_open_streams",
    help: "Streams that are open, on all doors.",
    labelNames: ["method"],
    registers: [registry],
  });

  /** A bearer that is still good may have become another's, or have lost a scope. */
  function hear(call: GatewayCall, { end }: Stream, verdict: Verdict): void {
    if ("failure" in verdict) {
      end.abort(verdict.failure);
      return;
    }
    call.principal = verdict.principal;
    try {
      if (permission.concerns(call.served)) permission.admit(call, parts);
    } catch (thrown) {
      end.abort(thrown);
    }
  }

  async function takeSeat(whose: keyof typeof most, owner: string): Promise<() => void> {
    const limit = most[whose];
    const seat = await parts.seats.take(owner, limit);
    if (seat.isGranted) return seat.release;
    const detail = `the ${whose} has ${seat.taken} open streams, which is the most`;
    throw fail("tier-limit", { current_streams: seat.taken, limit }, { detail });
  }

  async function takeSeatOfAddress({ clientAddress }: GatewayCall): Promise<() => void> {
    const network = networkOf(clientAddress, { v4: 32, v6: 64 });
    const seat = await parts.seats.take(`address ${network}`, most.address);
    if (seat.isGranted) return seat.release;
    const detail = `your address has ${seat.taken} open streams, which is the most`;
    throw fail("rate-limited", { retry_after_seconds: tryAgainAfter }, { detail, retryAfter: tryAgainAfter });
  }

  /** Counts a stream for which no bearer is asked among those of its client's address. */
  function countOfAddress(call: GatewayCall, end: AbortController) {
    const isCounted = takeSeatOfAddress(call);
    isCounted.catch((refusal) => end.abort(refusal));
    return {
      isCounted,
      forget: () =>
        void isCounted.then(
          (release) => release(),
          () => undefined,
        ),
    };
  }

  /**
   * Counts a stream among those of its account, and of a session that it joins. A refusal ends it. Gives what settles
   * when it is known whether the account has room, and what forgets the stream.
   */
  function count(call: GatewayCall, { end }: Stream): { isCounted: Promise<unknown>; forget(): void } {
    if (call.served.rules.public) return countOfAddress(call, end);
    const { accountId } = call.principal;
    const isCounted = takeSeat("account", accountId);
    isCounted.catch((refusal) => end.abort(refusal));
    const seats = new Map([["", isCounted]]);
    call.joinWith(async (sessionId) => {
      // By account as well: the session may be another's, which its method finds out meanwhile.
      if (!seats.has(sessionId)) seats.set(sessionId, takeSeat("session", `${accountId} ${sessionId}`));
      await Promise.all(seats.values());
    });
    return {
      isCounted,
      forget() {
        // The method may still be on its way to a session.
        call.joinWith(undefined);
        for (const seat of seats.values())
          seat.then(
            (release) => release(),
            () => undefined,
          );
      },
    };
  }

  return {
    async *run(call, open) {
      const { rules, name } = call.served;
      const stream = { end: new AbortController(), noMoreRequests: new AbortController() };
      const lasts = streamLimits.concerns(call.served) ? count(call, stream) : undefined;
      const { bearer } = call;
      const unwatch = bearer && parts.bearers.watch(bearer, (verdict) => hear(call, stream, verdict));
      const stop = (): void => (rules.follows ? stream.end : stream.noMoreRequests).abort(stopped);
      all.add(stop);
      openStreams.inc({ method: name });
      try {
        const answers = open(stream.noMoreRequests.signal);
        yield* untilAborted(lasts ? after(lasts.isCounted, answers) : answers, stream.end.signal);
      } finally {
        openStreams.dec({ method: name });
        all.delete(stop);
        unwatch?.();
        lasts?.forget();
        call.cancel();
      }
    },
    async seat(call, end) {
      const release = await takeSeatOfAddress(call);
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

/** The items of a source, which begins at once, none of them before something else has come to pass. */
async function* after<T>(other: Promise<unknown>, source: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const item of source) {
    await other;
    yield item;
  }
}

/** The items of a source until the signal aborts: then it throws the reason, or just ends when the gateway stops. */
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
    // Not awaited: a source that waits for its next item gives its answer only then.
    void iterator.return?.();
  }
}
