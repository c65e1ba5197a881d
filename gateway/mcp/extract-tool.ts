import type { ExtractForAccount } from "../../src/agents/turns/account-extraction.ts";
import { describeFound, readExtractionSchema } from "../../src/agents/turns/extract.ts";
import { markAsPage } from "../../src/agents/turns/page.ts";
import { SessionService } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { maxTurnWaitMs } from "./agent-tools.ts";
import { defineTool, integer, sessionId, type ToolContext, text } from "./tool.ts";

/** Maximum bytes of a part of a page that one model call reads. */
const longestPart = 16_384;

/** Scope required to call the account's model, the same as for agents. */
const modelScope = "agent_sessions:write";

/** Throws `forbidden` if the client may not use the account's model. */
function assertModelScope({ principal: { kind, scopes } }: ToolContext): void {
  if (scopes.has(modelScope)) return;
  throw fail(
    "forbidden",
    {},
    { detail: `the ${kind} lacks the scope ${modelScope}: use a ${kind} that has this scope` },
  );
}

/** Creates the tool that extracts data with the account's model. */
export const createExtractTool = (extract: ExtractForAccount) =>
  defineTool({
    name: "extract",
    description:
      "Reads the page, or the element with a ref, in parts by the account's model, and returns data that matches a JSON Schema: for long tables and lists. If the result has next_offset, call it again with that offset for the rest.",
    hints: { readOnly: true },
    input: {
      ...sessionId,
      schema: { type: "object", description: "JSON Schema of the data, with type object" },
      instructions: text("what to include, and how to write it"),
      ref: text("from the last page shown"),
      offset: integer("next_offset of the call before", 0, 100_000_000),
      model: text("Model for the extraction. Default: the account's model"),
    },
    required: ["session_id", "schema"],
    output: { outcome: { type: "string" }, page: { type: "string" }, next_offset: { type: "integer" } },
    async run(context, { session_id: id, schema: givenSchema, instructions, ref, offset: from = 0, model }) {
      assertModelScope(context);
      const { call, header, principal, signal } = context;
      const extraction = { schema: await readExtractionSchema(givenSchema), instructions, ref };
      const caller = { accountId: principal.accountId, header: header("x-byok-llm-api-key"), model, signal };
      const found = await extract({ ...caller, milliseconds: maxTurnWaitMs }, extraction, {
        from,
        async read(part) {
          const request = { id, maxBytes: longestPart, ...part };
          const { markdown, nextOffset: next } = await call(SessionService.method.read, request);
          const marked = markAsPage({ format: "markdown" }, markdown);
          return next === undefined ? { text: marked } : { text: marked, next };
        },
      });
      const { outcome, text: page } = await describeFound(extraction, found);
      const { next: next_offset } = found;
      const more = next_offset === undefined ? "" : `\nFor the rest, call extract with offset ${next_offset}.`;
      const structured = { outcome, page, ...(next_offset !== undefined && { next_offset }) };
      return { structured, text: `${outcome}\n${page}${more}` };
    },
  });
