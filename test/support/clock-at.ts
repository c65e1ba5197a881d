import { type Clock, systemClock } from "../../src/platform/clock.ts";

/** Creates a clock whose present is the test's own. */
export const clockAt = (now: () => number): Clock => ({ ...systemClock, now });
