/** Why a request came to nothing. The first is our own rule, everything else is the other side's doing. */
export type FetchFaultReason =
  | "address_not_allowed"
  | "name_not_resolved"
  | "connection_refused"
  | "unreachable"
  | "tls"
  | "timeout"
  | "too_large"
  | "connection_reset"
  | "not_http";

/** A request to an address of a user's choice that came to nothing, with the rest of a sentence that begins with it. */
export class FetchFault extends Error {
  override readonly name = "FetchFault";
  readonly reason: FetchFaultReason;

  constructor(reason: FetchFaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

/** What TLS says when the other side is not who it should be. */
const untrusted = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO$)/;

const reset = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "ERR_STREAM_PREMATURE_CLOSE"]);

/** Tells whether a connection ended without an answer, as one does that was kept for too long. */
export function isReset(thrown: unknown): boolean {
  return reset.has(codeOf(thrown) ?? "");
}

/** Makes a FetchFault of what Node throws. What has no code is not Node's, and stays as it is. */
export function asFault(thrown: unknown): unknown {
  const code = codeOf(thrown);
  if (thrown instanceof FetchFault || code === undefined) return thrown;
  const fault = (reason: FetchFaultReason, message: string) => new FetchFault(reason, `${message} (${code})`, thrown);
  if (untrusted.test(code)) return fault("tls", "cannot be trusted");
  if (code === "ECONNREFUSED") return fault("connection_refused", "refuses connections");
  if (code === "HPE_HEADER_OVERFLOW") return fault("too_large", "answered with too large a head");
  if (reset.has(code)) return fault("connection_reset", "broke off");
  return code.startsWith("HPE_") ? fault("not_http", "does not speak HTTP") : fault("unreachable", "cannot be reached");
}

/** Several addresses tried in turn end in an AggregateError, whose first cause tells most. */
export function codeOf(error: unknown): string | undefined {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && "code" in first ? String(first.code) : undefined;
}
