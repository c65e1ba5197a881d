import type http from "node:http";
import type { Socket } from "node:net";
import type { HostPort } from "../../src/platform/outgoing/address-rules.ts";
import { DialingAgent, type EgressRoute, type Exit } from "./egress-route.ts";
import { probeMs } from "./proxy-check.ts";
import { ProxyFailure } from "./proxy-failure.ts";
import { admitThroughProxy, type EgressGuard } from "./resolver.ts";
import type { Upstream } from "./upstream.ts";
import { type EgressChange, UpstreamWatch } from "./upstream-watch.ts";

/** Milliseconds for a proxy to reach a site. Less than the 30 s of a navigation, so that the page sees the error. */
const tunnelMs = 20_000;

export interface ProxiedRouteOptions {
  readonly upstream: Upstream;
  readonly guard: EgressGuard;
  /** Target used to probe a proxy that seems to be lost. */
  readonly check: HostPort;
  onChange(change: EgressChange): void;
}

/**
 * Egress through a customer's proxy, including private targets that the operator allows. Plain http is sent to an HTTP
 * proxy in absolute form, as browsers do, because most proxies, such as squid by default, allow tunnels only to port
 * 443. All other traffic, and all traffic over SOCKS5, uses tunnels.
 */
export class ProxiedRoute implements EgressRoute {
  readonly #options: ProxiedRouteOptions;
  readonly #watch: UpstreamWatch;
  readonly #agent: http.Agent;
  readonly #closing = new AbortController();

  constructor(options: ProxiedRouteOptions) {
    this.#options = options;
    const { upstream, check, onChange } = options;
    this.#watch = new UpstreamWatch({
      onChange,
      probe: async (signal) => void (await upstream.tunnel(check, { signal, timeoutMs: probeMs })).destroy(),
    });
    const tunnelOptions = { signal: this.#closing.signal, timeoutMs: tunnelMs };
    const isSocks = upstream.protocol === "socks5";
    this.#agent = new DialingAgent((target) =>
      isSocks ? upstream.tunnel(target, tunnelOptions) : upstream.connect(tunnelOptions),
    );
  }

  get state(): "proxied" | "lost" {
    return this.#watch.isLost ? "lost" : "proxied";
  }

  async open(target: HostPort): Promise<Exit | "refused"> {
    const { upstream, guard } = this.#options;
    if (!(await admitThroughProxy(target, guard, () => upstream.isInPrivateNetwork()))) return "refused";
    const { target: proxy, authorization, protocol } = upstream;
    return {
      agent: this.#agent,
      ...(protocol !== "socks5" && { proxy: { target: proxy, authorization } }),
      connect: (signal) => this.#connect(target, signal),
      onAnswer: () => this.#watch.confirm(),
      onSilence: (error) => this.#onFailure(error),
    };
  }

  close(): void {
    this.#closing.abort();
    this.#watch.close();
    this.#agent.destroy();
  }

  async #connect(target: HostPort, signal: AbortSignal): Promise<Socket> {
    return await this.#options.upstream.tunnel(target, { signal, timeoutMs: tunnelMs });
  }

  #onFailure(error: unknown): void {
    if (error instanceof ProxyFailure && error.isOfTarget) this.#watch.confirm();
    else this.#watch.suspect();
  }
}
