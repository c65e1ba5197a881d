import { type CallToolResult, type InputRequiredResult, inputRequired } from "@modelcontextprotocol/server";
import { escapePageMarkers } from "../../src/agents/turns/page.ts";
import type { ErrorSlug } from "../../src/platform/error-table.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import type { Failure } from "../../src/platform/errors.ts";
import type { ToolResult } from "./tool.ts";

/** Converts the result of a tool to an MCP result. */
export function toResult({ structured, text, picture, links = [] }: ToolResult): CallToolResult {
  return {
    content: [
      { type: "text", text: text ?? escapePageMarkers(JSON.stringify(structured)) },
      ...(picture
        ? [{ type: "image" as const, data: Buffer.from(picture).toString("base64"), mimeType: "image/jpeg" }]
        : []),
      ...links.map((link) => ({ type: "resource_link" as const, ...link })),
    ],
    structuredContent: structured,
  };
}

/** Name of the input request that shows a link to the user. */
export const linkKey = "link";

/** Returns a result that asks the client to show a link to its user and to repeat the call. */
export const toInputRequest = ({ url, message, state }: NonNullable<ToolResult["ask"]>): InputRequiredResult =>
  inputRequired({ inputRequests: { [linkKey]: inputRequired.elicitUrl({ url, message }) }, requestState: state });

/** Next step for the model after an error, because the detail of the error may name none. */
const nextSteps: Partial<Record<ErrorSlug, string>> = {
  "not-found": "use an id from an earlier result",
  "session-destroyed": "the session has ended: call start_session",
  "session-timeout": "call observe to see what has happened before you repeat the call",
  conflict: "call observe, and act by its refs",
  "rate-limited": "wait, then repeat the call",
  forbidden: "tell the person which permission the API key lacks",
};

/** Converts a failure to an error result, with the next step for the model. `moreMembers` are added to the result. */
export function toErrorResult(failure: Failure, requestId: string, moreMembers: object = {}): CallToolResult {
  const { slug, detail = errorTable[slug].about, errors, retryAfter } = failure;
  const next = nextSteps[slug];
  const problem = {
    error: slug,
    detail,
    ...(errors.length > 1 && { errors }),
    ...(retryAfter !== undefined && { retry_after_seconds: retryAfter }),
    ...(next !== undefined && { next }),
    ...moreMembers,
    request_id: requestId,
  };
  return { content: [{ type: "text", text: escapePageMarkers(JSON.stringify(problem)) }], isError: true };
}
