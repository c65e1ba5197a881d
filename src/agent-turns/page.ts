import { create } from "@bufbuild/protobuf";
import {
  CaptureKind,
  CaptureRequestSchema,
  type InteractRequest,
  InteractRequestSchema,
  NavigateRequestSchema,
} from "../gen/pilothouse/v1/session_pb.ts";
import { type FieldFault, failFaults } from "../platform/errors.ts";
import { compileReader } from "../platform/rest-json/reader.ts";
import { validate } from "../platform/validation.ts";
import { collectCapture } from "../sessions/capture-file.ts";
import type { SessionCaller } from "../sessions/session-caller.ts";
import type { Sessions } from "../sessions/sessions.ts";
import { lookMark } from "./conversation.ts";

/** The page of a session, for an agent: it is looked at, and acted upon. */
export interface Page {
  /** Shows the page in words, marked as what a page says. */
  look(caller: SessionCaller): Promise<string>;
  navigate(caller: SessionCaller, url: string): Promise<void>;
  /** Does an action in the JSON of REST. Throws `validation-failed` for what is none. */
  act(caller: SessionCaller, action: unknown): Promise<void>;
}

/** Characters of a look at most: 24 kB of what is mostly ASCII. */
const longestLook = 24_000;

/** Milliseconds that an action may take. */
const actionPatience = 5_000;

const readInteract = compileReader(InteractRequestSchema, new Set());

/** Elements of a document that say nothing to who drives it. */
const noise = ["script", "style", "svg", "noscript", "template"];

/** Leaves out all elements of a tag, in one pass however the document is made. */
function without(html: string, tag: string): string {
  let rest = "";
  for (let at = 0; ; ) {
    const from = html.indexOf(`<${tag}`, at);
    if (from === -1) return rest + html.slice(at);
    rest += html.slice(at, from);
    const end = html.indexOf(`</${tag}>`, from);
    if (end === -1) return rest;
    at = end + tag.length + 3;
  }
}

function shorten(html: string): string {
  const said = noise.reduce(without, html).replaceAll("</page>", "").replace(/\s+/g, " ");
  return said.length <= longestLook ? said : `${said.slice(0, longestLook)} [the page goes on]`;
}

/** Makes the page of a session. */
export function createPage(sessions: Sessions, sessionId: string): Page {
  return {
    async look(caller) {
      const request = create(CaptureRequestSchema, { id: sessionId, kind: CaptureKind.DOM_SNAPSHOT });
      const [state, capture] = [
        await sessions.state(caller, sessionId),
        await collectCapture(sessions.capture(caller, sessionId, request)),
      ];
      const head = JSON.stringify({ url: state.url, title: state.title });
      return `${lookMark}${head}>\n${shorten(new TextDecoder().decode(capture.data))}\n</page>`;
    },
    async navigate(caller, url) {
      await sessions.navigate(caller, sessionId, create(NavigateRequestSchema, { id: sessionId, url }));
    },
    async act(caller, action) {
      const faults: FieldFault[] = [];
      // What the reader of a message makes is that message.
      const request = readInteract({ id: sessionId, action, timeout_ms: actionPatience }, faults) as InteractRequest;
      if (faults.length > 0) throw failFaults("validation-failed", faults);
      validate(InteractRequestSchema, request);
      await sessions.interact(caller, sessionId, request);
    },
  };
}
