import { type Clock, systemClock } from "../../src/platform/clock.ts";

/** Creates a clock whose current time is set by the test. */
export const clockAt = (now: () => number): Clock => ({ ...systemClock, now });
