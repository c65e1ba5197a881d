/** A request of a step, in the JSON of REST. */
type Json = Readonly<Record<string, unknown>>;

/** What a step has to answer; what is not named may be anything. */
export interface Expectation {
  /** Members of the answer. */
  readonly answer?: Json;
  /** The failure: its slug, members of its extensions, and what its detail says. */
  readonly problem?: { readonly slug: string; readonly extensions?: Json; readonly detail?: RegExp };
  /** The step answers within this many milliseconds. */
  readonly withinMs?: number;
}

/** One request to a session. A `state` is asked again until it is as expected, for at most 10 s. */
export interface Step extends Expectation {
  readonly operation: "navigate" | "interact" | "wait" | "capture" | "state";
  /** `url` may be a path of the fixture site. */
  readonly request?: Json;
}

/** One awkward thing that a page can do, with what a client does and what it is answered. */
export interface HostileCase {
  readonly name: string;
  readonly session?: Json;
  readonly steps: readonly Step[];
}

/** A navigation. */
export const go = (url: string, expectation: Expectation = {}, more: Json = {}): Step => ({
  operation: "navigate",
  request: { url, ...more },
  ...expectation,
});

/** A tap on an element. */
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

/** Looks until the state has these members. */
export const state = (answer: Json): Step => ({ operation: "state", answer, withinMs: 11_000 });

/** An answer with this title. */
export const titled = (title: string): Expectation => ({ answer: { title } });

/** The timeout of steps that are to run into it: time enough for a busy machine to see why. */
export const short = { timeout_ms: 2_500 };

/** How much later than its time is up a busy machine may answer: the next longer time of a command is 30 s. */
export const lateMs = 2_000;

/** When they have to be answered at the latest. */
export const shortMs = short.timeout_ms + lateMs;

/** A timeout of `SHORT`, in time and explained. */
export const timedOut = (detail: RegExp): Expectation => ({
  problem: { slug: "session-timeout", detail },
  withinMs: shortMs,
});

/** Looks until the active page has this title. */
export const untilTitle = (title: string): Step => state({ title });

/** The session goes on: every case ends with this. */
export const goesOn: Step = go("/plain.html", { answer: { title: "Plain", http_status: 200 }, withinMs: 10_000 });
