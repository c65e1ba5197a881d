/** From which value a pressure closes a worker, and below which it opens it again. */
export interface GateRule {
  readonly closeAt: number;
  /** Lower than `closeAt`, so that a value between the two changes nothing. */
  readonly openBelow: number;
  /** Milliseconds that the value must be at or above `closeAt` first. */
  readonly closeAfter: number;
  /** Milliseconds that the value must be below `openBelow` first. */
  readonly openAfter: number;
}

/** Where a gate is: `since` is when the value crossed the threshold that moves it, while it is beyond. */
export interface GateState {
  readonly isClosed: boolean;
  readonly since: number | undefined;
}

/** A gate before its first value. */
export const openGate: GateState = { isClosed: false, since: undefined };

/** Gives the state after a value. */
export function moveGate(state: GateState, rule: GateRule, value: number, now: number): GateState {
  const isBeyond = state.isClosed ? value < rule.openBelow : value >= rule.closeAt;
  if (!isBeyond) return { isClosed: state.isClosed, since: undefined };
  const since = state.since ?? now;
  const patience = state.isClosed ? rule.openAfter : rule.closeAfter;
  return now - since >= patience ? { isClosed: !state.isClosed, since: undefined } : { ...state, since };
}
