import type { CheckProxyCommand } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { parseTarget } from "../../src/platform/outgoing/address-rules.ts";
import { ProxyFailure } from "./proxy-failure.ts";
import type { EgressGuard } from "./resolver.ts";
import { Upstream } from "./upstream.ts";

/** Maximum milliseconds that a proxy may take to answer, even if the caller waits longer. */
export const probeMs = 10_000;

/** Requests a tunnel from a proxy, as a session launch would. Throws `proxy-validation-failed` if that fails. */
export async function checkProxy(guard: EgressGuard, command: CheckProxyCommand, signal: AbortSignal): Promise<void> {
  const { proxy, timeoutMs } = command;
  const target = parseTarget(command.target);
  if (!proxy || !target) throw failFields("validation-failed", { [proxy ? "target" : "proxy"]: "is required" });
  try {
    const tunnelOptions = { signal, timeoutMs: Math.min(timeoutMs || probeMs, probeMs) };
    (await new Upstream(proxy, guard).tunnel(target, tunnelOptions)).destroy();
  } catch (thrown) {
    if (!(thrown instanceof ProxyFailure)) throw thrown;
    throw fail(
      "proxy-validation-failed",
      { reason: thrown.reason },
      { detail: `${thrown.message}: correct the proxy's settings, or use another` },
    );
  }
}
