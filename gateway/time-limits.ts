/** Time limits of clients, in milliseconds. */
export interface TimeLimits {
  /** Until the first byte of a connection, the end of its TLS handshake, or the response to a ping. */
  readonly silence: number;
  /** Until the headers and the body of a request are complete. Streams and raw bodies have their own limits. */
  readonly request: number;
  /** Until a gRPC request without a key is complete, if its method is not in the registry. */
  readonly open: number;
  /** Until an idle HTTP/2 connection is closed. */
  readonly idle: number;
  /**
   * Until an idle HTTP/1.1 connection is closed. Longer than in common client pools, so that the client closes first.
   */
  readonly keepAlive: number;
}

/** Limits of the public ports. */
export const timeLimits: TimeLimits = {
  silence: 10_000,
  request: 60_000,
  open: 10_000,
  idle: 60_000,
  keepAlive: 75_000,
};
