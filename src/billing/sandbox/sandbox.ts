import { randomBytes } from "node:crypto";
import type { Transport } from "../processors/transport.ts";
import { createSandboxCrypto } from "./sandbox-btcpay.ts";
import { createSandboxCard } from "./sandbox-stripe.ts";
import type { SandboxPage, SandboxParts, SandboxTools } from "./sandbox-tools.ts";

/** Stands in for both processors where no real one is set: no money moves. */
export interface Sandbox {
  readonly stripe: Transport;
  readonly btcPay: Transport;
  /** Describes what a page shows; undefined when there is no such thing. */
  page(id: string): Promise<SandboxPage | undefined>;
  /** Does what somebody has pressed, and gives the page as it is then. */
  act(id: string, action: string): Promise<SandboxPage | undefined>;
}

/** Makes the sandbox. */
export function createSandbox(parts: SandboxParts): Sandbox {
  const tools: SandboxTools = {
    ...parts,
    nextId: (prefix) => `${prefix}_test_${randomBytes(12).toString("hex")}`,
    seconds: () => Math.floor(parts.clock.now() / 1_000),
    async change(kind, thing, changes) {
      const changed = { ...thing, ...changes };
      await parts.store.put(kind, changed);
      return changed;
    },
  };
  const card = createSandboxCard(tools);
  const crypto = createSandboxCrypto(tools);
  const show = async (id: string) => (await card.page(id)) ?? (await crypto.page(id));
  return {
    stripe: card.transport,
    btcPay: crypto.transport,
    page: show,
    async act(id, action) {
      await card.act(id, action);
      await crypto.act(id, action);
      return show(id);
    },
  };
}
