import { create } from "@bufbuild/protobuf";
import type { ListedFile } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  type InteractRequest,
  InteractRequestSchema,
  type InteractResponse,
  NavigateRequestSchema,
  type Observation,
  ObserveOptionsSchema,
  ObserveRequestSchema,
  ObserveScope,
  ReadRequestSchema,
  type SessionState,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { type FieldFault, failFaults } from "../../platform/errors.ts";
import { compileReader } from "../../platform/rest-json/reader.ts";
import { ruleFaults } from "../../platform/validation.ts";
import type { SessionCaller } from "../../sessions/commands/session-caller.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import { pageMark } from "./model-messages.ts";

/** The page of a session, as the agent observes it and acts on it. */
export interface Page {
  /** Describes the page in text, marked as page content: from `seen` if given, or else from a new observation. */
  describe(caller: SessionCaller, seen?: Observation): Promise<string>;
  observe(caller: SessionCaller, options: AgentSnapshotOptions): Promise<Observation>;
  /** Reads a part of the page, or of the element with a reference, as Markdown. */
  read(caller: SessionCaller, part: { readonly ref?: string; readonly offset?: number }): Promise<PagePart>;
  navigate(caller: SessionCaller, url: string): Promise<ToolOutcome>;
  /** Runs actions given as REST JSON. Throws `validation-failed` if an action is invalid. */
  act(caller: SessionCaller, actions: readonly unknown[]): Promise<ToolOutcome>;
}

/** Outcome of a tool call. */
export interface ToolOutcome {
  /** Outcome in words, for the model. */
  readonly outcome: string;
  /** The settled page; undefined if the observation failed or the tool does not observe. */
  readonly seen: Observation | undefined;
  /** Text for the model in place of a description of the page. */
  readonly text?: string;
}

/** Text of a part of a page, marked as page content. */
export interface PagePart {
  readonly text: string;
  /** Offset of the next part; undefined at the end. */
  readonly next?: number;
}

/** Part of the page to observe: the viewport, the whole page, elements that contain a text, or a single element. */
export interface AgentSnapshotOptions {
  readonly isWhole?: boolean;
  readonly find?: string;
  /** Includes a screenshot of the viewport. */
  readonly screenshot?: boolean;
  /** Draws the numbers of the references on the screenshot. */
  readonly marks?: boolean;
  /** Reads only the text or value of an element, starting at `offset`. */
  readonly ref?: string;
  readonly offset?: number;
}

/** Milliseconds of the timeout: for the first action and settling, and for each further action. */
const actionTimeout = { first: 8_000, next: 1_000 };

/** Maximum bytes of a part that `read` returns. */
const longestPart = 16_384;

/** Maximum numbers of other pages, recent files and recent dialogs to report, and maximum characters of their texts. */
const max = { pages: 10, files: 20, dialogs: 3, text: 200 };

const readInteract = compileReader(InteractRequestSchema, new Set());

const asShown = create(ObserveOptionsSchema);

/**
 * Escapes page markers in page content, so that a page cannot end its own section or start another section. JSON has
 * the same value after escaping.
 */
export const escapePageMarkers = (text: string): string => text.replace(/<(?=\/?page\b)/gi, "\\u003c");

const short = (text: string): string => text.slice(0, max.text);

/** Other pages, recent dialogs, unfinished downloads and files of a session, if any. */
export function otherSessionState({ pages, dialogs, downloads }: SessionState, files: readonly ListedFile[]) {
  const others = pages.filter(({ active }) => !active).slice(-max.pages);
  const recentDialogs = dialogs.slice(-max.dialogs);
  const unfinished = downloads.filter(({ status }) => status !== "finished");
  return {
    ...(others.length > 0 && {
      other_pages: others.map(({ id, url, title }) => ({ id, url: short(url), title: short(title) })),
    }),
    ...(recentDialogs.length > 0 && {
      last_dialogs: recentDialogs.map(({ kind, message, answer }) => ({ kind, message: short(message), answer })),
    }),
    ...(unfinished.length > 0 && { downloads: unfinished.map(({ fileName, status }) => ({ name: fileName, status })) }),
    ...(files.length > 0 && { files: files.flatMap(({ file }) => file?.name ?? []) }),
  };
}

/** Describes an observed page in text, marked as page content. */
export function describePage(
  { pageId, url, title, viewport, scroll, height, truncated, nextOffset, snapshot }: Observation,
  besides: object = {},
): string {
  const view = {
    width: viewport?.width,
    height: viewport?.height,
    top: Math.round(scroll?.y ?? 0),
    of: Math.round(height),
  };
  const head = { page_id: pageId, url: url.slice(0, 500), title: short(title), view };
  const rest = { ...(truncated && { truncated }), ...(nextOffset !== undefined && { next_offset: nextOffset }) };
  return markAsPage({ ...head, ...rest, ...besides }, snapshot);
}

/** Marks text as page content, with a head of JSON. */
export const markAsPage = (head: object, text: string): string =>
  `${pageMark}${escapePageMarkers(JSON.stringify(head)).slice(1)}>\n${escapePageMarkers(text)}\n</page>`;

export function createPage(sessions: Sessions, sessionId: string): Page {
  async function observe(
    caller: SessionCaller,
    { isWhole = false, screenshot = false, marks = false, ...part }: AgentSnapshotOptions,
  ): Promise<Observation> {
    const scope = isWhole ? ObserveScope.PAGE : ObserveScope.UNSPECIFIED;
    const request = create(ObserveRequestSchema, { id: sessionId, scope, screenshot, marks, ...part });
    const faults = ruleFaults(ObserveRequestSchema, request);
    if (faults.length > 0) throw failFaults("validation-failed", faults);
    return await sessions.observe(caller, request);
  }

  return {
    observe,
    async describe(caller, seen) {
      const [shown, state, files] = await Promise.all([
        seen ?? observe(caller, {}),
        sessions.getState(caller, { id: sessionId, brief: true }),
        sessions.files.list(caller, sessionId, { limit: max.files, before: 0n }),
      ]);
      return describePage(shown, otherSessionState(state, files));
    },
    async read(caller, part) {
      const request = create(ReadRequestSchema, { id: sessionId, maxBytes: longestPart, ...part });
      const { markdown, nextOffset: next } = await sessions.read(caller, request);
      const head = { format: "markdown", ...(next !== undefined && { next_offset: next }) };
      const text = markAsPage(head, markdown);
      return next === undefined ? { text } : { text, next };
    },
    async navigate(caller, url) {
      const request = create(NavigateRequestSchema, { id: sessionId, url, observe: asShown });
      const { httpStatus, observation: seen } = await sessions.navigate(caller, request);
      return { outcome: httpStatus === undefined ? "done" : `done: HTTP status ${httpStatus}`, seen };
    },
    async act(caller, actions) {
      const answer = await sessions.interact(caller, readActions(sessionId, actions));
      return { outcome: outcomeOf(answer, actions.length), seen: answer.observation };
    },
  };
}

/** Parses actions given as REST JSON. The request observes the page. Faults name the index of the action. */
export function readActions(id: string, [action, ...next]: readonly unknown[]): InteractRequest {
  const faults: FieldFault[] = [];
  const timeoutMs = actionTimeout.first + actionTimeout.next * next.length;
  // The reader was compiled for this message type.
  const request = readInteract({ id, action, next, timeout_ms: timeoutMs }, faults) as InteractRequest;
  if (faults.length === 0) faults.push(...ruleFaults(InteractRequestSchema, request));
  if (faults.length > 0) throw failFaults("validation-failed", faults.map(toActionFault));
  request.observe = asShown;
  return request;
}

function toActionFault({ field, ...fault }: FieldFault): FieldFault {
  const [, index] = /^next\[(\d+)\]/.exec(field) ?? [];
  const name = `actions[${index === undefined ? 0 : Number(index) + 1}]`;
  return { ...fault, field: field.replace(/^(?:action\b|next\[\d+\])/, name) };
}

/** Describes the outcome of actions in words. Page markers are escaped, because the detail may quote the page. */
export function outcomeOf({ done, stopped, opened }: InteractResponse, count: number): string {
  const openedPages = opened.length > 0 ? `; opened ${opened.join(", ")}` : "";
  if (!stopped) return `done${openedPages}`;
  // The action may have had an effect before it failed.
  const fault = `action ${done + 1} was not completed: ${stopped.slug}: ${stopped.detail}`;
  return escapePageMarkers(`completed ${done} of ${count} actions${openedPages}; ${fault}`);
}
