import type { Message } from "@bufbuild/protobuf";
import { Gauge, type Registry } from "prom-client";
import type { Verdict } from "../../src/identity/bearer-watch.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../call.ts";
import { permission } from "./permission.ts";
import type { Policy, PolicyParts } from "./policy.ts";

const mostOfASession = 16;
const mostOfAnAccount = 256;

const stopped = Symbol("stopped");

/** Bounds the streams that last: those that follow something, and those that converse. They are counted as they run. */
export const streamLimits: Policy = {
  name: "open streams",
  enforces: ["follows"],
  concerns: ({ rules, kind }) => !rules.public && (rules.follows || kind === "bidi_streaming"),
  refuses: () => ["tier-limit"],
};

/** Opens the answers of a stream. The signal aborts when its client is no longer to be read from. */
type Open = (noMoreRequests: AbortSignal) => AsyncIterable<Message>;

/** The streams of a gateway, on whatever door. They end with the bearer that opened them. */
export interface OpenStreams {
  /** Gives the messages of a stream; throws the problem that a request would get once its bearer has ended. */
  run(call: GatewayCall, open: Open): AsyncGenerator<Message>;
  /** Ends what would last for ever: what follows something ends, what answers a client finishes what it has read. */
  stop(): void;
}

interface Stream {
  /** Ends the answers with its reason. */
  readonly end: AbortController;
  readonly noMoreRequests: AbortController;
  readonly follows: boolean;
}

/** Counts streams by whose they are. */
class Claims {
  readonly #most: number;
  readonly #whose: string;
  readonly #counts = new Map<string, number>();

  constructor(most: number, whose: string) {
    this.#most = most;
    this.#whose = whose;
  }

  /** Counts one more; throws `tier-limit` when there are as many as may be. Gives what takes it back. */
  add(owner: string): () => void {
    const count = this.#counts.get(owner) ?? 0;
    if (count >= this.#most) {
      const detail = `the ${this.#whose} has ${count} open streams on this gateway, which is the most`;
      throw fail("tier-limit", { current_streams: count, limit: this.#most }, { detail });
    }
    this.#counts.set(owner, count + 1);
    return () => {
      const left = (this.#counts.get(owner) ?? 1) - 1;
      if (left > 0) this.#counts.set(owner, left);
      else this.#counts.delete(owner);
    };
  }
}

/** Makes the streams of a gateway. */
export function createOpenStreams(parts: PolicyParts, registry: Registry): OpenStreams {
  const all = new Set<Stream>();
  const ofAccounts = new Claims(mostOfAnAccount, "account");
  const ofSessions = new Claims(mostOfASession, "session");
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

  /** Counts a stream that lasts; gives what forgets it. */
  function claim(call: GatewayCall): () => void {
    if (!streamLimits.concerns(call.served)) return () => undefined;
    const claims = new Map([["account", ofAccounts.add(call.principal.accountId)]]);
    call.joinWith((sessionId) => {
      if (!claims.has(sessionId)) claims.set(sessionId, ofSessions.add(sessionId));
    });
    return () => {
      for (const forget of claims.values()) forget();
    };
  }

  return {
    async *run(call, open) {
      const { rules, name } = call.served;
      const forget = claim(call);
      const stream = { end: new AbortController(), noMoreRequests: new AbortController(), follows: rules.follows };
      const { bearer } = call;
      const unwatch = bearer && parts.bearers.watch(bearer, (verdict) => hear(call, stream, verdict));
      all.add(stream);
      openStreams.inc({ method: name });
      try {
        yield* untilAborted(open(stream.noMoreRequests.signal), stream.end.signal);
      } finally {
        openStreams.dec({ method: name });
        all.delete(stream);
        unwatch?.();
        forget();
        call.cancel();
      }
    },
    stop() {
      for (const { end, noMoreRequests, follows } of all) {
        if (follows) end.abort(stopped);
        else noMoreRequests.abort(stopped);
      }
    },
  };
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
