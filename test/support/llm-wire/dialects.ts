import { anthropic } from "./anthropic.ts";
import { chat } from "./chat.ts";
import type { Dialect } from "./dialect.ts";
import { google } from "./google.ts";
import { openai } from "./openai.ts";

/** Returns the protocol of a path. */
export function dialectOf(path: string): Dialect | undefined {
  if (/^\/v1\/messages(\?|$)/.test(path)) return anthropic;
  if (path === "/v1/responses") return openai;
  if (path.endsWith("/chat/completions")) return chat;
  return /^\/v1(beta)?\/models\//.test(path) ? google : undefined;
}
