import { formatTarget, type HostPort, isMetadataHost } from "../../src/platform/outgoing/address-rules.ts";

/** Header that marks responses of the relay itself. */
export const blockedHeader = "x-pilothouse-blocked";

/** Sentence endings for the reasons to refuse a host. The host is the subject. */
export const refusalReasons = {
  private: "is not a public address, and pages may reach only public addresses",
  outside: "is not an allowed host of this session",
  blocked: "is blocked by the options of this session",
} as const;

export type RefusalReason = keyof typeof refusalReasons;

/** Returns the page for a refused address. `showRemedy` adds the setting with which an operator allows the address. */
export function refusalPage(target: HostPort, why: RefusalReason, showRemedy: boolean): string {
  const name = escapeHtml(formatTarget(target));
  const remedy =
    why === "private" && showRemedy && !isMetadataHost(target.host)
      ? `<p>Start the service with <code>EGRESS_ALLOW=${name}</code> to allow it.</p>`
      : "";
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Blocked: ${name}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;padding:0 1em}</style></head>
<body><h1>This address is blocked</h1>
<p><strong>${name}</strong> ${refusalReasons[why]}.</p>
${remedy}</body></html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
