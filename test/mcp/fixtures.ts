import { type CallToolResult, type ContentBlock, Server } from "@modelcontextprotocol/server";

// A picture of one pixel, and 44 bytes of silence.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const said = (text: string): ContentBlock => ({ type: "text", text });
const image: ContentBlock = { type: "image", data: png, mimeType: "image/png" };
const resource = (uri: string, text: string): ContentBlock => ({
  type: "resource",
  resource: { uri, mimeType: "text/plain", text },
});

/** Results of the tools that the conformance suite expects, by name. */
const results: Readonly<Record<string, CallToolResult>> = {
  test_simple_text: { content: [said("This is a simple text response for testing.")] },
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: "audio", data: wav, mimeType: "audio/wav" }] },
  test_embedded_resource: {
    content: [resource("test://embedded-resource", "This is an embedded resource content.")],
  },
  test_multiple_content_types: {
    content: [
      said("Multiple content types test:"),
      image,
      {
        type: "resource",
        resource: { uri: "test://mixed", mimeType: "application/json", text: '{"test":"data","value":123}' },
      },
    ],
  },
  test_error_handling: { content: [said("This tool intentionally returns an error for testing")], isError: true },
  test_tool_with_progress: { content: [said("done")] },
  test_tool_with_logging: { content: [said("done")] },
  json_schema_2020_12_tool: { content: [said("done")] },
};

const plainInput = { type: "object" as const, properties: {} };
const newInput = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object" as const,
  $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
  additionalProperties: false,
};

const prompts: Readonly<Record<string, (args: Readonly<Record<string, string>>) => ContentBlock[]>> = {
  test_simple_prompt: () => [said("This is a simple prompt for testing.")],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  test_prompt_with_embedded_resource: ({ resourceUri = "" }) => [
    resource(resourceUri, "Embedded resource content for testing."),
    said("Please process the embedded resource above."),
  ],
  test_prompt_with_image: () => [image, said("Please analyze the image above.")],
};

const argumentsOf: Readonly<Record<string, readonly string[]>> = {
  test_prompt_with_arguments: ["arg1", "arg2"],
  test_prompt_with_embedded_resource: ["resourceUri"],
};

function readResource(uri: string) {
  if (uri === "test://static-binary") return { uri, mimeType: "image/png", blob: png };
  const [, id] = /^test:\/\/template\/(\w+)\/data$/.exec(uri) ?? [];
  if (id === undefined)
    return { uri, mimeType: "text/plain", text: "This is the content of the static text resource." };
  const data = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: "application/json", text: JSON.stringify(data) };
}

/** Creates a server with the tools, resources and prompts that the conformance suite expects. */
export function createFixtureServer(): Server {
  const capabilities = { tools: {}, resources: {}, prompts: {}, logging: {}, completions: {} };
  const server = new Server({ name: "fixtures", version: "1" }, { capabilities });
  server.setRequestHandler("tools/list", () => ({
    tools: Object.keys(results).map((name) => ({
      name,
      description: name,
      inputSchema: name === "json_schema_2020_12_tool" ? newInput : plainInput,
    })),
  }));
  server.setRequestHandler("tools/call", async ({ params: { name } }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (name === "test_tool_with_progress" && progressToken !== undefined) {
      for (const progress of [0, 50, 100])
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    }
    if (name === "test_tool_with_logging") {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"])
        await mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
    }
    const result = results[name];
    if (!result) throw new Error(`no tool ${name}`);
    return result;
  });
  server.setRequestHandler("resources/list", () => ({
    resources: ["test://static-text", "test://static-binary"].map((uri) => ({
      uri,
      name: uri,
      description: uri,
      mimeType: uri.endsWith("text") ? "text/plain" : "image/png",
    })),
  }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template" }],
  }));
  server.setRequestHandler("resources/read", ({ params: { uri } }) => ({ contents: [readResource(uri)] }));
  server.setRequestHandler("prompts/list", () => ({
    prompts: Object.keys(prompts).map((name) => ({
      name,
      description: name,
      arguments: (argumentsOf[name] ?? []).map((each) => ({ name: each, description: each, required: true })),
    })),
  }));
  server.setRequestHandler("prompts/get", ({ params: { name, arguments: args = {} } }) => ({
    messages: (prompts[name]?.(args) ?? []).map((content) => ({ role: "user" as const, content })),
  }));
  server.setRequestHandler("completion/complete", () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return server;
}
