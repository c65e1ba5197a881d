/** How long a client may take, in milliseconds. */
export interface TimeLimits {
  /** Until its connection has sent a first byte, or finished its TLS handshake. */
  readonly silence: number;
  /** Until a request has come whole: its headers, and its body. Streams and raw bodies have rules of their own. */
  readonly request: number;
  /** Until the request of a gRPC call that needs no key and is no method of the registry is complete. */
  readonly open: number;
  /** That an HTTP/2 connection may be open without a request. */
  readonly idle: number;
  /** That an HTTP/1.1 connection may: longer than the pools of common clients keep one, so that they close it, not we. */
  readonly keepAlive: number;
}

/** The limits of the public ports. */
export const timeLimits: TimeLimits = {
  silence: 10_000,
  request: 60_000,
  open: 10_000,
  idle: 60_000,
  keepAlive: 75_000,
};
