import { create, type Message } from "@bufbuild/protobuf";
import {
  CaptureFormat,
  CaptureKind,
  CaptureRequestSchema,
  CreateSessionRequestSchema,
  FetchFormat,
  type FetchRequest,
  type FetchResponse,
  FetchResponseSchema,
  NavigateRequestSchema,
  OnChallenge,
  ReadRequestSchema,
  WaitRequestSchema,
  WaitUntil,
} from "../../gen/pilothouse/v1/session_pb.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import { asFailure, Failure, failFields } from "../../platform/errors.ts";
import type { Ids } from "../../platform/ids.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import type { Sessions } from "../sessions.ts";
import { collectCapture } from "./capture-file.ts";
import { findLinks } from "./html-links.ts";
import { callerOf, type SessionCaller, type SessionMaker } from "./session-caller.ts";

const usualTimeoutMs = 30_000;
/** Milliseconds to wait for the load of the page, and for its network to be idle. */
const quietWithin = 6_000;
/** Milliseconds kept for reading a page that is never idle. */
const minReading = 500;

const maxText = 1024 * 1024;
/** Characters of a document in which links are looked for. */
const maxSearched = 8 * 1024 * 1024;
const maxBinary = 16 * 1024 * 1024;

/** The session ends by itself after this, should its gateway fail before the end of the call. */
const idleSeconds = 15;
const longestSeconds = 120;
/** Milliseconds within which the session is ended, also for a client that has left. */
const endWithin = 10_000;

export interface FetchParts {
  readonly db: Database;
  readonly ids: Ids;
  readonly sessions: Sessions;
  readonly audit: AuditLog;
}

/** A fetch in progress. */
interface Fetching {
  readonly call: Call;
  readonly caller: SessionCaller;
  readonly id: string;
  readonly answer: FetchResponse;
  readonly reasons: string[];
  binaryLeft: number;
  /** Milliseconds until the timeout, at least 1. */
  remaining(): number;
}

export function createFetch({
  db,
  ids,
  sessions,
  audit,
}: FetchParts): (call: Call, request: FetchRequest) => Promise<FetchResponse> {
  /** Launches the session of the call. A failure is stored as the end of the session, and thrown. */
  async function launch(call: Call, request: FetchRequest): Promise<string> {
    const { archetype, locale, timezone, proxy } = request;
    const commit = async <Answer extends Message>(run: (tx: Tx) => Promise<Answer | Failure>): Promise<Answer> => {
      const outcome = await db.transaction(run);
      if (outcome instanceof Failure) throw outcome;
      return outcome;
    };
    const maker: SessionMaker = {
      ...callerOf(call),
      ids,
      resumes: false,
      charge: () => call.charge(),
      audit: (tx, entry) => void audit.append(tx, { ...entry, action: "session.create", call }),
      commit,
    };
    const session = create(CreateSessionRequestSchema, {
      ...(archetype !== undefined && { archetype }),
      ...(locale !== undefined && { locale }),
      ...(timezone !== undefined && { timezone }),
      ...(proxy && { proxy }),
      timeoutSeconds: longestSeconds,
      idleTimeoutSeconds: idleSeconds,
      onChallenge: OnChallenge.REPORT,
    });
    return (await sessions.launch(maker, session)).id;
  }

  /** Waits until the page has loaded and its network is idle. */
  async function settle({ caller, id, reasons, remaining }: Fetching): Promise<void> {
    const conditions = [
      ["the page had not loaded", { case: "loadState", value: { state: WaitUntil.LOAD } }],
      ["the network was not idle", { case: "networkIdle", value: {} }],
      ["the document was changing", { case: "documentIdle", value: {} }],
    ] as const;
    const quietBy = performance.now() + quietWithin;
    for (const [reason, condition] of conditions) {
      const left = Math.min(quietBy - performance.now(), remaining() / 2 - minReading);
      const timeoutMs = Math.max(1, Math.floor(left));
      try {
        await sessions.wait(caller, create(WaitRequestSchema, { id, condition, timeoutMs }));
      } catch (thrown) {
        const failure = asFailure(thrown);
        assertRunning(caller, failure);
        const isLate = failure.slug === "session-timeout";
        reasons.push(isLate ? `${reason} after ${timeoutMs} ms` : detailOf(failure));
        return;
      }
    }
  }

  async function capture({ caller, call, id, remaining }: Fetching, kind: CaptureKind, format?: CaptureFormat) {
    const timeoutMs = Math.max(1, Math.floor(remaining()));
    const request = create(CaptureRequestSchema, { id, kind, timeoutMs, ...(format !== undefined && { format }) });
    return (await collectCapture(sessions.captureStream(caller, request), (bytes) => call.holdCapture(bytes))).data;
  }

  async function addMarkdown({ caller, id, answer, reasons, remaining }: Fetching): Promise<void> {
    const timeoutMs = Math.max(1, Math.floor(remaining()));
    const request = create(ReadRequestSchema, { id, maxBytes: maxText, timeoutMs });
    const { markdown, nextOffset } = await sessions.read(caller, request);
    answer.markdown = markdown;
    if (nextOffset !== undefined) answer.truncated.push(FetchFormat.MARKDOWN);
    if (markdown.trim() === "") reasons.push("the page shows no text");
  }

  function addDocument({ answer }: Fetching, document: Uint8Array, formats: readonly FetchFormat[]) {
    if (formats.includes(FetchFormat.HTML)) {
      // A character cut in two is dropped.
      answer.html = new TextDecoder().decode(document.subarray(0, maxText), { stream: document.length > maxText });
      if (document.length > maxText) answer.truncated.push(FetchFormat.HTML);
    }
    if (!formats.includes(FetchFormat.LINKS)) return;
    const { links, isCut } = findLinks(new TextDecoder().decode(document.subarray(0, maxSearched)), answer.url);
    answer.links = links;
    if (isCut || document.length > maxSearched) answer.truncated.push(FetchFormat.LINKS);
  }

  async function addBinary(fetching: Fetching, name: "screenshot" | "pdf"): Promise<void> {
    const { SCREENSHOT, PDF } = CaptureKind;
    const data = await capture(fetching, name === "pdf" ? PDF : SCREENSHOT);
    if (data.length > fetching.binaryLeft) {
      fetching.reasons.push(`${name}: screenshot and PDF have more than ${maxBinary} bytes together`);
      return;
    }
    fetching.binaryLeft -= data.length;
    fetching.answer[name] = data;
  }

  async function addFormats(fetching: Fetching, formats: readonly FetchFormat[]): Promise<void> {
    const { MARKDOWN, HTML, LINKS, SCREENSHOT, PDF } = FetchFormat;
    const isWanted = (...some: FetchFormat[]) => some.some((format) => formats.includes(format));
    const steps: [string, boolean, () => Promise<void>][] = [
      ["markdown", isWanted(MARKDOWN), () => addMarkdown(fetching)],
      [
        "html",
        isWanted(HTML, LINKS),
        async () =>
          addDocument(fetching, await capture(fetching, CaptureKind.DOM_SNAPSHOT, CaptureFormat.HTML), formats),
      ],
      ["screenshot", isWanted(SCREENSHOT), () => addBinary(fetching, "screenshot")],
      ["pdf", isWanted(PDF), () => addBinary(fetching, "pdf")],
    ];
    for (const [name, isNeeded, run] of steps) {
      if (!isNeeded) continue;
      try {
        await run();
      } catch (thrown) {
        const failure = asFailure(thrown);
        assertRunning(fetching.caller, failure);
        fetching.reasons.push(`${name}: ${detailOf(failure)}`);
      }
    }
  }

  async function fetchPage(fetching: Fetching, { url, formats }: FetchRequest): Promise<void> {
    const { caller, id, answer, reasons } = fetching;
    const timeoutMs = Math.max(1, Math.floor(fetching.remaining()));
    const request = create(NavigateRequestSchema, { id, url, waitUntil: WaitUntil.COMMIT, timeoutMs });
    const { httpStatus, download } = await sessions.navigate(caller, request);
    if (httpStatus !== undefined) answer.httpStatus = httpStatus;
    answer.url = url;
    if (download) {
      reasons.push(`the URL is a download (${download.fileName}): create a session to receive the file`);
      return;
    }
    await settle(fetching);
    const { url: shown, title, challenge } = await sessions.getState(caller, { id });
    Object.assign(answer, { url: shown, title, ...(challenge && { challenge }) });
    await addFormats(fetching, formats.length > 0 ? formats : [FetchFormat.MARKDOWN]);
  }

  return async (call, request) => {
    if (!URL.canParse(request.url)) throw failFields("validation-failed", { url: "is not a URL" });
    const id = await launch(call, request);
    const beganAt = performance.now();
    const endsAt = beganAt + (request.timeoutMs ?? usualTimeoutMs);
    const caller = callerOf(call);
    const answer = create(FetchResponseSchema);
    const remaining = () => Math.max(1, endsAt - performance.now());
    const fetching = { call, caller, id, answer, reasons: [], binaryLeft: maxBinary, remaining } satisfies Fetching;
    const reasons: string[] = fetching.reasons;
    try {
      await fetchPage(fetching, request);
    } finally {
      const signal = AbortSignal.timeout(endWithin);
      const ender = { ...caller, signal, deadline: performance.now() + endWithin };
      // A session that cannot be ended now, or has ended already, ends by its idle timeout.
      await sessions.end(ender, id, { reason: "destroyed" }).catch(() => undefined);
    }
    answer.complete = reasons.length === 0 && answer.truncated.length === 0;
    if (reasons.length > 0) answer.incompleteReason = reasons.join("; ");
    else if (!answer.complete) answer.incompleteReason = "formats in `truncated` were cut at their maximum";
    answer.durationMs = Math.round(performance.now() - beganAt);
    return answer;
  };
}

/** Throws the failure if the session has ended or the client has left. */
function assertRunning({ signal }: SessionCaller, failure: Failure): void {
  if (signal.aborted || failure.slug === "session-destroyed") throw failure;
}

const detailOf = ({ detail, slug }: Failure): string => detail ?? slug;
