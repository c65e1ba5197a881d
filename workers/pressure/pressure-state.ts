/** Thresholds and delays at which one pressure closes a worker to new sessions and opens it again. */
export interface PressureRule {
  readonly closeAt: number;
  /** Lower than `closeAt`, for hysteresis. */
  readonly openBelow: number;
  /** Milliseconds that the value must stay at or above `closeAt`. */
  readonly closeAfter: number;
  /** Milliseconds that the value must stay below `openBelow`. */
  readonly openAfter: number;
}

/**
 * Whether one pressure closes the worker. `since` is the time from which the value has been beyond the threshold of the
 * opposite state, or undefined if it is not beyond that threshold.
 */
export interface PressureState {
  readonly isClosed: boolean;
  readonly since: number | undefined;
}

export const initialPressure: PressureState = { isClosed: false, since: undefined };

/** Returns the state after a new value. */
export function nextPressure(state: PressureState, rule: PressureRule, value: number, now: number): PressureState {
  const isBeyond = state.isClosed ? value < rule.openBelow : value >= rule.closeAt;
  if (!isBeyond) return { isClosed: state.isClosed, since: undefined };
  const since = state.since ?? now;
  const requiredMs = state.isClosed ? rule.openAfter : rule.closeAfter;
  return now - since >= requiredMs ? { isClosed: !state.isClosed, since: undefined } : { ...state, since };
}
