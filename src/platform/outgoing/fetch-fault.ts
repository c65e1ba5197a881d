/** Reason of a failed request. Only `address_not_allowed` means that this service refuses the address. */
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

/** A failed request to a user-supplied URL. The message completes a sentence that starts with the URL. */
export class FetchFault extends Error {
  override readonly name = "FetchFault";
  readonly reason: FetchFaultReason;

  constructor(reason: FetchFaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

/** Error codes of certificate and TLS failures. */
const untrusted = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO$)/;

const reset = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "UND_ERR_SOCKET"]);

/** Returns whether the connection was closed or reset, which servers may do to reused connections. */
export function isReset(thrown: unknown): boolean {
  return reset.has(codeOf(thrown) ?? "");
}

/** Converts an error of undici or Node.js to a FetchFault. Errors without a code are returned unchanged. */
export function asFault(thrown: unknown): unknown {
  const code = codeOf(thrown);
  if (thrown instanceof FetchFault || code === undefined) return thrown;
  const fault = (reason: FetchFaultReason, message: string) => new FetchFault(reason, `${message} (${code})`, thrown);
  if (untrusted.test(code)) return fault("tls", "cannot be trusted");
  if (code === "HTTPParserError") return fault("not_http", "does not respond in HTTP");
  if (code === "ECONNREFUSED") return fault("connection_refused", "refuses connections");
  if (code === "UND_ERR_CONNECT_TIMEOUT") return fault("timeout", "did not accept a connection");
  if (code === "UND_ERR_HEADERS_OVERFLOW") return fault("too_large", "sent too large response headers");
  if (isUpgrade(thrown)) return fault("not_http", "switched to another protocol");
  return reset.has(code)
    ? fault("connection_reset", "closed the connection")
    : fault("unreachable", "cannot be reached");
}

/** Returns whether the server switched to another protocol without being asked. */
function isUpgrade(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message === "bad upgrade";
}

/** Returns an error's code, or the name of a parser's error. If several addresses failed, uses the first error. */
export function codeOf(error: unknown): string | undefined {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(first instanceof Error) || !("code" in first)) return undefined;
  return first.code === undefined ? first.name : String(first.code);
}
