import { randomBytes } from "node:crypto";
import type { Transport } from "../processors/transport.ts";
import { createSandboxCrypto } from "./sandbox-btcpay.ts";
import { createSandboxCard } from "./sandbox-stripe.ts";
import type { SandboxPage, SandboxParts, SandboxTools } from "./sandbox-tools.ts";

/** Replaces both processors in embedded mode if neither is configured. No money moves. */
export interface PaymentSandbox {
  readonly stripe: Transport;
  readonly btcPay: Transport;
  /** Describes a page; undefined if its identifier is unknown. */
  page(id: string): Promise<SandboxPage | undefined>;
  /** Runs the action of a pressed button, and returns the updated page. */
  act(id: string, action: string): Promise<SandboxPage | undefined>;
}

export function createSandbox(parts: SandboxParts): PaymentSandbox {
  const tools: SandboxTools = {
    ...parts,
    nextId: (prefix) => `${prefix}_test_${randomBytes(12).toString("hex")}`,
    seconds: () => Math.floor(parts.clock.now() / 1_000),
    async change(kind, object, changes) {
      const changed = { ...object, ...changes };
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
