import { create } from "@bufbuild/protobuf";
import { tools as agentTools } from "../../src/agents/prompts/tools.ts";
import { describePage, markAsPage, otherSessionState, outcomeOf, readActions } from "../../src/agents/turns/page.ts";
import {
  type Observation,
  ObserveOptionsSchema,
  ObserveScope,
  SessionService,
  SessionStatus,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { defineTool, integer, pageOutput, sessionId, type ToolResult, text } from "./tool.ts";

/** Tokens of a page description: default and maximum. */
const tokens = { usual: 4_000, max: 8_000 };

/**
 * Assumed bytes per token of a page description, to convert a limit in tokens to bytes. Most descriptions have more
 * bytes per token.
 */
const bytesPerToken = 3;

/** Bytes reserved for the part of a page description before the snapshot. */
const headBytes = 1_000;

/** Maximum bytes of a snapshot. */
const longestSnapshot = 24_576;

const maxTokens = { max_tokens: integer("of the page shown; default 4000", 1_000, tokens.max) } as const;

const bytesOf = (tokenLimit: number | undefined): number =>
  Math.min((tokenLimit ?? tokens.usual) * bytesPerToken - headBytes, longestSnapshot);

/** Returns a hint on how to see the rest of the page if the snapshot is truncated, otherwise "". */
const truncationHint = ({ truncated }: Observation): string =>
  truncated ? `\nThe rest is left out: scroll, call observe with find, or with max_tokens up to ${tokens.max}.` : "";

/** Returns a result with the page, or with a hint if the page could not be observed. */
function pageResult(outcome: string, seen: Observation | undefined, besides: object = {}): ToolResult {
  const page = seen
    ? `${describePage(seen, besides)}${truncationHint(seen)}`
    : "The page could not be observed yet: call observe.";
  return { structured: { outcome, page }, text: `${outcome}\n${page}` };
}

/** Returns a result with one part of a long text or value. */
function textPartResult(seen: Observation): ToolResult {
  const { structured, text: shown = "" } = pageResult("done", seen);
  const { nextOffset: next_offset } = seen;
  if (next_offset === undefined) return { structured, text: shown };
  const more = `\nFor the next part, call observe with this ref and offset ${next_offset}.`;
  return { structured: { ...structured, next_offset }, text: `${shown}${more}` };
}

export const navigateTool = defineTool({
  name: "navigate",
  description: "Opens an address and shows the page once it has settled.",
  hints: {},
  input: { ...sessionId, url: text("http or https"), ...maxTokens },
  required: ["session_id", "url"],
  output: pageOutput,
  async run({ call }, { session_id: id, url, max_tokens: tokenLimit }) {
    const request = { id, url, observe: { maxBytes: bytesOf(tokenLimit) } };
    const { httpStatus, status, download, observation } = await call(SessionService.method.navigate, request);
    if (download)
      return pageResult("the address is a download, which appears in files; the page is unchanged", observation);
    if (status === SessionStatus.PAUSED)
      return pageResult("the page is a bot check, which only a person can pass: call ask_person", observation);
    return pageResult(httpStatus === undefined ? "done" : `done: HTTP status ${httpStatus}`, observation);
  },
});

export const observeTool = defineTool({
  name: "observe",
  description:
    "Shows what is in view: a line per element, with ref=... where it can be acted on; with whole, also the rest of the page; with find, only what contains the text; with ref, all of a text or value that ends in (+N characters).",
  hints: { readOnly: true },
  input: {
    ...sessionId,
    whole: { type: "boolean" },
    find: text("text in a name or value"),
    ref: text("from the last page shown"),
    offset: integer("with ref: next_offset of the part before", 0, 100_000_000),
    ...maxTokens,
  },
  required: ["session_id"],
  output: { ...pageOutput, next_offset: { type: "integer" } },
  async run({ call }, { session_id: id, whole = false, max_tokens: tokenLimit, ...part }) {
    const scope = whole ? ObserveScope.PAGE : ObserveScope.UNSPECIFIED;
    const seen = await call(SessionService.method.observe, { id, scope, maxBytes: bytesOf(tokenLimit), ...part });
    if (part.ref !== undefined) return textPartResult(seen);
    const state = await call(SessionService.method.getState, { id });
    return pageResult("done", seen, otherSessionState(state, []));
  },
});

export const readTool = defineTool({
  name: "read",
  description:
    "Reads the text of the page, or of the element with a ref, as Markdown: for articles, tables and long texts. It has no refs to act on.",
  hints: { readOnly: true },
  input: {
    ...sessionId,
    ref: text("from the last page shown"),
    offset: integer("next_offset of the part before", 0, 100_000_000),
    ...maxTokens,
  },
  required: ["session_id"],
  output: { page: { type: "string" }, next_offset: { type: "integer" } },
  async run({ call }, { session_id: id, max_tokens: tokenLimit, ...part }) {
    const request = { id, maxBytes: bytesOf(tokenLimit), ...part };
    const { markdown, nextOffset: next_offset } = await call(SessionService.method.read, request);
    const rest = next_offset === undefined ? {} : { next_offset };
    const page = markAsPage({ format: "markdown", ...rest }, markdown);
    const more = next_offset === undefined ? "" : `\nFor the next part, call read with offset ${next_offset}.`;
    return { structured: { page, ...rest }, text: `${page}${more}` };
  },
});

export const actTool = defineTool({
  name: "act",
  description: agentTools.act.description,
  hints: { destructive: true },
  input: { ...sessionId, actions: { type: "array", ...agentTools.act.input.properties.actions }, ...maxTokens },
  required: ["session_id", "actions"],
  output: pageOutput,
  async run({ call }, { session_id: id, actions, max_tokens: tokenLimit }) {
    const request = readActions(id, actions);
    request.observe = create(ObserveOptionsSchema, { maxBytes: bytesOf(tokenLimit) });
    const answer = await call(SessionService.method.interact, request);
    return pageResult(outcomeOf(answer, actions.length), answer.observation);
  },
});

export const screenshotTool = defineTool({
  name: "screenshot",
  description:
    "Returns a JPEG picture of the view, at most 1280 pixels wide and high, for what observe cannot describe. With marks, each element has a numbered box, and the page shown has the ref of the number: box 12 is s7e12.",
  hints: { readOnly: true },
  input: { ...sessionId, marks: { type: "boolean" }, ...maxTokens },
  required: ["session_id"],
  output: { page: { type: "string" }, width: { type: "integer" }, height: { type: "integer" } },
  async run({ call }, { session_id: id, marks = false, max_tokens: tokenLimit }) {
    const request = { id, screenshot: true, marks, maxBytes: marks ? bytesOf(tokenLimit) : 1_024 };
    const seen = await call(SessionService.method.observe, request);
    const { width = 0, height = 0, data } = seen.picture ?? {};
    const page = marks
      ? `${describePage(seen)}${truncationHint(seen)}`
      : describePage({ ...seen, truncated: false, snapshot: "" });
    return { structured: { page, width, height }, text: page, ...(data && { picture: data }) };
  },
});

/** Returns the description of a page without its content, for a response without an observation. */
export const pageHead = ({ pageId, url, title }: { pageId: string; url: string; title: string }): string =>
  markAsPage({ page_id: pageId, url: url.slice(0, 500), title: title.slice(0, 200) }, "");
