/** Metadata of calls between workers and the service. */
export const fleetMetadata = {
  /** Worker to control process: worker id. */
  workerId: "worker-id",
  /** Worker to control process: secret received at registration. */
  workerSecret: "worker-secret",
  /** Worker to control process: host of the worker, for the log. */
  workerHost: "worker-host",
  /** Gateway to worker: SHA-256 of the secret in hexadecimal, which proves access to the worker's row. */
  workerSecretHash: "worker-secret-hash",
  /** W3C trace context of the calling span, in both directions. */
  traceparent: "traceparent",
  /** Trailer of a command if the response is a replay for the same Idempotency-Key. */
  replayed: "idempotency-replayed",
} as const;
