import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { modern } from "./mcp-post.ts";

/** Result of a tool. */
export interface ToolOutput {
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of every shape.
  readonly structured: any;
  readonly isError: boolean;
  readonly types: readonly string[];
}

/** Client of one of the official packages. */
export interface SdkClient extends AsyncDisposable {
  readonly revision: string | undefined;
  toolNames(): Promise<string[]>;
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutput>;
}

type Connect = (url: string, key: string) => Promise<SdkClient>;

const identity = { name: "test", version: "1" };

interface Listed {
  readonly tools: readonly { readonly name: string }[];
}

function toOutput(result: Record<string, unknown>): ToolOutput {
  // Each package has validated the result, and has its own types for results.
  const { content, structuredContent, isError } = result as {
    readonly content: readonly { readonly type: string; readonly text?: string }[];
    readonly structuredContent?: unknown;
    readonly isError?: boolean;
  };
  return {
    text: content.map(({ text = "" }) => text).join("\n"),
    structured: structuredContent,
    isError: isError ?? false,
    types: content.map(({ type }) => type),
  };
}

const namesOf = ({ tools }: Listed): string[] => tools.map(({ name }) => name);

type ElicitHandler = (request: { readonly params: Record<string, unknown> }) => {
  readonly action: "accept" | "decline";
};

/** Connects a client of revision 2026-07-28. With `elicit`, the client shows links to its user. */
export const connectModern = async (url: string, key: string, elicit?: ElicitHandler): Promise<SdkClient> => {
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  const client = new ModernClient(identity, {
    versionNegotiation: { mode: { pin: modern } },
    ...(elicit && { capabilities: { elicitation: { url: {} } } }),
  });
  if (elicit) client.setRequestHandler("elicitation/create", async (request) => elicit(request));
  await client.connect(new ModernTransport(new URL(`${url}/mcp`), { requestInit }));
  return {
    revision: client.getNegotiatedProtocolVersion(),
    toolNames: async () => namesOf(await client.listTools()),
    call: async (name, args = {}, signal) =>
      toOutput(await client.callTool({ name, arguments: args }, { ...(signal && { signal }) })),
    [Symbol.asyncDispose]: () => client.close(),
  };
};

/** Connects as both packages do. */
export const connectBy: Readonly<Record<string, Connect>> = {
  "@modelcontextprotocol/client 2.x": (url, key) => connectModern(url, key),
  async "@modelcontextprotocol/sdk 1.x"(url, key) {
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    const client = new LegacyClient(identity);
    const transport = new LegacyTransport(new URL(`${url}/mcp`), { requestInit });
    // The package's own transport does not match its interface under exactOptionalPropertyTypes.
    await client.connect(transport as Parameters<LegacyClient["connect"]>[0]);
    return {
      revision: transport.protocolVersion,
      toolNames: async () => namesOf(await client.listTools()),
      call: async (name, args = {}, signal) =>
        toOutput(await client.callTool({ name, arguments: args }, undefined, { ...(signal && { signal }) })),
      [Symbol.asyncDispose]: () => client.close(),
    };
  },
};
