/** A placement of a session: what a worker is told of must be of the placement that it has. */
export interface Placement {
  readonly sessionId: string;
  readonly placementEpoch: bigint;
}
