/** Thresholds at which a pressure closes a worker and opens it again. */
export interface PressureRule {
  readonly closeAt: number;
  /** Lower than `closeAt`, for hysteresis. */
  readonly openBelow: number;
  /** Milliseconds that the value must stay at or above `closeAt`. */
  readonly closeAfter: number;
  /** Milliseconds that the value must stay below `openBelow`. */
  readonly openAfter: number;
}

/** State of a gate. `since` is the time from which the value has been beyond the next threshold, if it still is. */
export interface PressureState {
  readonly isClosed: boolean;
  readonly since: number | undefined;
}

export const initialPressure: PressureState = { isClosed: false, since: undefined };

/** Returns the state of a gate after a new value. */
export function nextPressure(state: PressureState, rule: PressureRule, value: number, now: number): PressureState {
  const isBeyond = state.isClosed ? value < rule.openBelow : value >= rule.closeAt;
  if (!isBeyond) return { isClosed: state.isClosed, since: undefined };
  const since = state.since ?? now;
  const patience = state.isClosed ? rule.openAfter : rule.closeAfter;
  return now - since >= patience ? { isClosed: !state.isClosed, since: undefined } : { ...state, since };
}
