/** Why a proxy could not be used, in the words of `proxy-validation-failed`. */
export type ProxyFailureReason = "unreachable" | "auth_failed" | "timeout" | "egress_blocked";

/** Chromium's names for the same, had it used the proxy itself. */
const netErrors: Record<ProxyFailureReason, string> = {
  unreachable: "ERR_PROXY_CONNECTION_FAILED",
  auth_failed: "ERR_PROXY_AUTH_REQUESTED",
  timeout: "ERR_PROXY_CONNECTION_FAILED",
  egress_blocked: "ERR_TUNNEL_CONNECTION_FAILED",
};

/** A proxy that did not do what it was asked for. Never holds the password. */
export class ProxyFailure extends Error {
  override readonly name = "ProxyFailure";
  readonly reason: ProxyFailureReason;
  /** What happened, as the rest of a sentence that begins with the proxy. */
  readonly what: string;
  /** The proxy works, and refused one target: that says nothing about others. */
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

/** Names a refused tunnel: by HTTP status, or by the answer of a SOCKS proxy. */
export function tunnelRefused(target: string, answer: string): ProxyFailure {
  return new ProxyFailure("egress_blocked", `refuses a tunnel to ${target} (${answer})`, true);
}

/** Names a refused login. */
export function loginRefused(): ProxyFailure {
  return new ProxyFailure("auth_failed", "refuses the login");
}

/** Names a connection that broke before the proxy had answered. */
export function hungUp(cause: unknown): ProxyFailure {
  const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new ProxyFailure("unreachable", `ended the connection without an answer${code}`);
}
