/** Response of the MCP server. */
export interface McpAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
  readonly body: any;
}

export const modern = "2026-07-28";
export const legacy = "2025-11-25";

/** Envelope of a message of revision 2026-07-28. */
const envelope = (version: string) => ({
  "io.modelcontextprotocol/protocolVersion": version,
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
});

/** Body and headers of a request of revision 2026-07-28. */
export function modernMessage(method: string, params: object = {}, version = modern) {
  const { name } = params as { readonly name?: string };
  return {
    body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: envelope(version) } },
    headers: {
      "mcp-protocol-version": version,
      "mcp-method": method,
      ...(name !== undefined && { "mcp-name": name }),
    },
  };
}

/** Body and headers of a request of revision 2025-11-25. */
export const legacyMessage = (method: string, params: object = {}) => ({
  body: { jsonrpc: "2.0", id: 1, method, params },
  headers: { "mcp-protocol-version": legacy },
});

/** Posts a message, and returns the response with its JSON or the JSON of its only event. */
export async function postMcp(
  url: string,
  key: string | undefined,
  message: { readonly body: unknown; readonly headers?: Record<string, string> },
  init: RequestInit = {},
): Promise<McpAnswer> {
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    body: typeof message.body === "string" ? message.body : JSON.stringify(message.body),
    ...init,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...message.headers,
      ...init.headers,
    },
  });
  const text = await response.text();
  const [, event] = /^data: (.+)$/m.exec(text) ?? [];
  const { status, headers } = response;
  return { status, headers, body: text === "" ? undefined : JSON.parse(event ?? text) };
}
