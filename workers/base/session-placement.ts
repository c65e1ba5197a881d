/** Placement of a session on a worker. Commands must match the worker's current placement. */
export interface Placement {
  readonly sessionId: string;
  readonly placementEpoch: bigint;
}
