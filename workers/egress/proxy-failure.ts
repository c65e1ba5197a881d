/** The `reason` values of `proxy-validation-failed`. */
export type ProxyFailureReason = "unreachable" | "auth_failed" | "timeout" | "egress_blocked";

/** Error names that Chromium reports when it uses a faulty proxy itself. */
const netErrors: Record<ProxyFailureReason, string> = {
  unreachable: "ERR_PROXY_CONNECTION_FAILED",
  auth_failed: "ERR_PROXY_AUTH_REQUESTED",
  timeout: "ERR_PROXY_CONNECTION_FAILED",
  egress_blocked: "ERR_TUNNEL_CONNECTION_FAILED",
};

/** Failure of a proxy. Never contains the password. */
export class ProxyFailure extends Error {
  override readonly name = "ProxyFailure";
  readonly reason: ProxyFailureReason;
  /** Predicate of a sentence that has the proxy as its subject. */
  readonly what: string;
  /** True if the proxy works but refused this target. Other targets may succeed. */
  readonly isOfTarget: boolean;

  constructor(reason: ProxyFailureReason, what: string, isOfTarget = false) {
    super(`the proxy ${what}`);
    this.reason = reason;
    this.what = what;
    this.isOfTarget = isOfTarget;
  }

  get netError(): string {
    return netErrors[this.reason];
  }
}

/** Creates the failure for a refused tunnel. `answer` is the HTTP status or the SOCKS reply. */
export function tunnelRefused(target: string, answer: string): ProxyFailure {
  return new ProxyFailure("egress_blocked", `refuses a tunnel to ${target} (${answer})`, true);
}

/** Creates the failure for refused credentials. */
export function loginRefused(): ProxyFailure {
  return new ProxyFailure("auth_failed", "refuses the login");
}

/** Creates the failure for a connection that closed before the proxy answered. */
export function connectionClosed(cause: unknown): ProxyFailure {
  const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new ProxyFailure("unreachable", `closed the connection without an answer${code}`);
}
