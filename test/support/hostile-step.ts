/** Request of a step in REST JSON. */
type Json = Readonly<Record<string, unknown>>;

/** Expected response of a step. Members that are not named may have any value. */
export interface Expectation {
  /** Members of the response. */
  readonly answer?: Json;
  /** Failure with its slug, members of its extensions, and a pattern of its detail. */
  readonly problem?: { readonly slug: string; readonly extensions?: Json; readonly detail?: RegExp };
  /** Milliseconds within which the step must be answered. */
  readonly withinMs?: number;
}

/** One request to a session. A `state` is repeated until it matches, for at most 10 s. */
export interface Step extends Expectation {
  readonly operation: "navigate" | "interact" | "wait" | "capture" | "state";
  /** `url` may be a path of the fixture site. */
  readonly request?: Json;
}

/** Difficult behaviour of a page, with a client's steps and their expected responses. */
export interface HostileCase {
  readonly name: string;
  /** Represents a behaviour that runtimes implement differently, so that every test run has it in all of them. */
  readonly inBothRuntimes?: true;
  readonly steps: readonly Step[];
}

export const go = (url: string, expectation: Expectation = {}, more: Json = {}): Step => ({
  operation: "navigate",
  request: { url, ...more },
  ...expectation,
});

export const tap = (
  selector: string,
  expectation: Expectation = {},
  more: Json = {},
  frame?: readonly string[],
): Step => ({
  operation: "interact",
  request: { action: { kind: "tap", selector, ...(frame && { frame }) }, ...more },
  ...expectation,
});

/** Polls until the state has these members. */
export const state = (answer: Json): Step => ({ operation: "state", answer, withinMs: 11_000 });

export const titled = (title: string): Expectation => ({ answer: { title } });

/** Timeout for steps that are expected to time out, long enough for a busy machine to find the reason. */
export const short = { timeout_ms: 2_500 };

/** Tolerance for late responses on a busy machine. The next longer timeout of a command is 30 s. */
export const lateMs = 2_000;

/** Limit for responses with the short timeout. */
export const shortMs = short.timeout_ms + lateMs;

/** A timeout after `short` that arrives in time with an explanation. */
export const timedOut = (detail: RegExp): Expectation => ({
  problem: { slug: "session-timeout", detail },
  withinMs: shortMs,
});

/** Polls until the active page has this title. */
export const untilTitle = (title: string): Step => state({ title });

/** Last step of every case: the session still works. */
export const goesOn: Step = go("/plain.html", { answer: { title: "Plain", http_status: 200 }, withinMs: 10_000 });
