/** Metadata of calls on the fleet link, by which both sides know each other. */
export const fleetMetadata = {
  /** Worker to gateway: its identifier. */
  workerId: "worker-id",
  /** Worker to gateway: the secret that its registration was answered with. */
  workerSecret: "worker-secret",
  /** Gateway to worker: SHA-256 of that secret in hexadecimal, which only who reads the worker's row can know. */
  workerSecretHash: "worker-secret-hash",
  /** Trailer of a command whose answer is that of an earlier one with the same Idempotency-Key. */
  replayed: "idempotency-replayed",
} as const;
