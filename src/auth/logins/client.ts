import type { Call } from "../../kernel/call.ts";
import { networkOf } from "../../platform/client-network.ts";

/** Where a login comes from. */
export interface Client {
  readonly address: string;
  /** The /24 or /48 of the address: those of one household, office or data center. */
  readonly network: string;
  /** What it calls itself. */
  readonly userAgent: string;
  /** The same without versions, so that an update makes no new device of it. */
  readonly family: string;
}

const longestUserAgent = 300;

/** Browsers by what only they say; the order matters, since most say that they are several others. */
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"];
const systems = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux"];

/** Reads what a call tells of its client. */
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
