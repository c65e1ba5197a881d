import { isLoopback } from "./credentials.ts";
import { UsageError } from "./usage-error.ts";

/** Returns the URL of a page. Adds a missing scheme: http for hosts of this machine, otherwise https. */
export function pageUrl(text: string): string {
  if (/^(?:https?:\/\/|about:)/i.test(text)) return text;
  const isHost = /^(?:localhost|\[::1\]|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:[/?#]|$)/i.test(text);
  if (!isHost) throw new UsageError(`expected a URL with http or https, or the id of a session, got ${text}`);
  return isLoopback(`http://${text}`) ? `http://${text}` : `https://${text}`;
}
