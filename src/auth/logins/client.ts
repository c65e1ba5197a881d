import type { Call } from "../../kernel/call.ts";
import { networkOf } from "../../platform/client-network.ts";

export interface Client {
  readonly address: string;
  /** The /24 or /48 of the address, which one household, office or data center shares. */
  readonly network: string;
  readonly userAgent: string;
  /** Browser and system without versions, so that an update is not a new device. */
  readonly family: string;
}

const longestUserAgent = 300;

/** Tokens of browsers in user agents. A browser may also send tokens later in this list, so the first match applies. */
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"];
const systems = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux"];

export function clientOf(call: Pick<Call, "clientAddress" | "header">): Client {
  const userAgent = (call.header("user-agent") ?? "").slice(0, longestUserAgent);
  return {
    address: call.clientAddress,
    network: networkOf(call.clientAddress, { v4: 24, v6: 48 }),
    userAgent,
    family: familyOf(userAgent),
  };
}

function familyOf(userAgent: string): string {
  const browser = browsers.find((name) => userAgent.includes(`${name}/`));
  if (browser === undefined) return userAgent.split(/[/ ]/, 1)[0]?.slice(0, 40) || "unknown";
  return `${browser} on ${systems.find((name) => userAgent.includes(name)) ?? "another system"}`;
}
