import { create } from "@bufbuild/protobuf";
import { type BrowserContext, type ConnectOverCDPTransport, chromium } from "playwright";
import { type ProxyCdpRequest, ProxyCdpRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { CdpProxy } from "../../workers/cdp-proxy/cdp-proxy.ts";
import type { BrowserProcess } from "../../workers/isolation/browser-process.ts";
import { EventFeed } from "../../workers/pages/event-feed.ts";

/** Connects Playwright to a launched browser as a customer does: through the CDP proxy with its policy. */
export async function lentPlaywright({ connection, version, targets }: BrowserProcess): Promise<BrowserContext> {
  const proxy = new CdpProxy({
    connection,
    version,
    targets,
    feed: new EventFeed(() => undefined),
    files: { pathOf: () => undefined },
    downloadPath: "/nowhere",
    processSettings: { has: () => false, release() {}, releaseAll() {}, restore() {} },
    restoreDevice: async () => undefined,
  });
  const browser = await chromium.connectOverCDP(new LentTransport(proxy), { noDefaults: true });
  const [context] = browser.contexts();
  if (!context) throw new Error("the browser has no context");
  return context;
}

/** Connection of a client without a network. */
class LentTransport implements ConnectOverCDPTransport {
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
  readonly #requests = new BoundedQueue<ProxyCdpRequest>({ items: Number.POSITIVE_INFINITY });

  constructor(proxy: CdpProxy) {
    const session = { isHeld: () => false, onCommand: () => undefined };
    void this.#deliver(proxy.proxyCdp(this.#requests, session, new AbortController().signal));
  }

  send(message: object): void {
    void this.#requests.push(create(ProxyCdpRequestSchema, { data: Buffer.from(JSON.stringify(message)), last: true }));
  }

  close(): void {
    void this.#requests.push(create(ProxyCdpRequestSchema, { closed: true }));
  }

  async #deliver(answers: ReturnType<CdpProxy["proxyCdp"]>): Promise<void> {
    let parts: Uint8Array[] = [];
    for await (const { data, last } of answers) {
      parts.push(data);
      if (!last) continue;
      const message = JSON.parse(Buffer.concat(parts).toString());
      parts = [];
      setImmediate(() => this.onmessage?.(message));
    }
    this.onclose?.();
  }
}
