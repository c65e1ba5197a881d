import { create } from "@bufbuild/protobuf";
import {
  CaptureKind,
  CaptureRequestSchema,
  ChallengeSchema,
  FetchFormat,
  type FetchRequest,
  type FetchResponse,
  FetchResponseSchema,
  NavigateRequestSchema,
  ReadRequestSchema,
  type WaitRequest,
  WaitUntil,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { asFailure, type Failure, fail } from "../../src/platform/errors.ts";
import { type ChallengeWatch, challengeMessage } from "../bot-checks/challenge-watch.ts";
import { assertReached, type NavigateScene, navigate } from "../driver/actions/navigate.ts";
import { waitFor } from "../driver/actions/wait-action.ts";
import { Captured, type RawCapture } from "../driver/capture/captured.ts";
import { snapshotDom } from "../driver/capture/dom-snapshot.ts";
import { printPdf } from "../driver/capture/pdf.ts";
import { takeScreenshot } from "../driver/capture/screenshot.ts";
import type { MarkdownScene } from "../driver/observe/markdown.ts";
import type { ObserveScene } from "../driver/observe/observe.ts";
import { readPage } from "../driver/observe/read-page.ts";
import { CommandProgress } from "../pages/progress.ts";
import { findLinks } from "./html-links.ts";

/** Maximum milliseconds to wait until the page has loaded and its network and document are idle. */
const quietWithin = 6_000;
/** Minimum milliseconds left for reading a page that is never idle. */
const minReadingMs = 500;
/** Share of the remaining time that a format may take, so that a hung page leaves time for the other formats. */
const formatShare = 0.5;

/** Maximum bytes of the Markdown and of the HTML. */
const maxText = 1024 * 1024;
/** Maximum bytes of a document that are searched for links. */
const maxSearched = 8 * 1024 * 1024;
/** Maximum bytes of the screenshot and the PDF together. */
const maxBinary = 16 * 1024 * 1024;

export interface FetchScene extends ObserveScene, NavigateScene, MarkdownScene {
  readonly challengeWatch: ChallengeWatch;
  /** Directory for large captures. */
  readonly directory: string;
  /** Aborts with the failure of the fetch if the client disconnects, the browser is lost or the worker stops. */
  readonly ended: AbortSignal;
}

/** The result of a fetch. Disposal deletes the files of large captures. */
export class FetchedPage implements AsyncDisposable {
  /** All fields but the screenshot and the PDF. */
  readonly header: FetchResponse;
  screenshot: Captured | undefined;
  pdf: Captured | undefined;

  constructor(header: FetchResponse) {
    this.header = header;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.screenshot?.[Symbol.asyncDispose]();
    await this.pdf?.[Symbol.asyncDispose]();
  }
}

interface Fetching {
  readonly scene: FetchScene;
  readonly answer: FetchResponse;
  readonly reasons: string[];
  readonly page: FetchedPage;
  binaryLeft: number;
}

type Condition = WaitRequest["condition"];

/** Loads a page and reads it in the requested formats. Throws if the page cannot be reached. */
export async function fetchPage(scene: FetchScene, request: FetchRequest): Promise<FetchedPage> {
  const beganAt = performance.now();
  const answer = create(FetchResponseSchema, { url: request.url });
  const reasons: string[] = [];
  const page = new FetchedPage(answer);
  const fetching: Fetching = { scene, answer, reasons, page, binaryLeft: maxBinary };
  try {
    if (await visit(fetching, request)) await addFormats(fetching, request.formats);
  } catch (thrown) {
    await page[Symbol.asyncDispose]();
    throw thrown;
  }
  answer.complete = reasons.length === 0 && answer.truncated.length === 0;
  if (reasons.length > 0) answer.incompleteReason = reasons.join("; ");
  else if (!answer.complete) answer.incompleteReason = "formats in `truncated` were cut at their maximum";
  answer.durationMs = Math.round(performance.now() - beganAt);
  return page;
}

/**
 * Loads the page, waits for the requested condition or until the page is idle, and sets the response's page fields. If
 * the wait fails, adds a reason. Resolves with false if the URL is a download.
 */
async function visit({ scene, answer, reasons }: Fetching, { url, wait }: FetchRequest): Promise<boolean> {
  const { sessionPage, challengeWatch } = scene;
  const since = Date.now();
  const { download } = await open(scene, url);
  if (download) {
    reasons.push(`the URL is a download (${download.fileName}): create a session to receive the file`);
    return false;
  }
  reasons.push(...(await (wait ? awaitCondition(scene, wait.condition) : settle(scene))));
  assertReached(scene, since);
  const [title] = await Promise.all([sessionPage.title(), challengeWatch.afterCommand("navigate", sessionPage)]);
  const { challenge } = challengeWatch;
  const { answer: response } = sessionPage.traffic;
  if (challenge) reasons.push(`the page shows a bot check (${challenge.kind})`);
  Object.assign(answer, {
    url: sessionPage.address,
    title,
    ...(response && { httpStatus: response.status }),
    ...(challenge && { challenge: create(ChallengeSchema, challengeMessage(challenge)) }),
  });
  return true;
}

async function open(scene: FetchScene, url: string): ReturnType<typeof navigate> {
  const timeoutMs = scene.progress.remaining();
  try {
    return await navigate(scene, create(NavigateRequestSchema, { url, waitUntil: WaitUntil.COMMIT }));
  } catch (thrown) {
    const failure = asFailure(thrown);
    if (failure.slug !== "session-timeout") throw failure;
    const detail = `the server did not answer within ${timeoutMs} ms: try again, or increase timeout_ms`;
    throw fail("session-timeout", {}, { detail, cause: failure });
  }
}

/**
 * Waits, for at most 6 s, until the network and the document of the page are idle. Returns the reasons why they are
 * not.
 */
async function settle(scene: FetchScene): Promise<string[]> {
  const { progress, sessionPage } = scene;
  const timeoutMs = Math.max(1, Math.floor(Math.min(quietWithin, progress.remaining() / 2 - minReadingMs)));
  using quiet = new CommandProgress(timeoutMs, [progress.signal]);
  const conditions = [
    ["the network was not idle", { case: "networkIdle", value: {} }],
    ["the document was not idle", { case: "documentIdle", value: {} }],
  ] as const;
  const waits = conditions.map(([reason, condition]) =>
    waitFor({ ...scene, progress: quiet }, condition as Condition).then(
      () => undefined,
      (thrown) => reasonOf(scene, thrown, `${reason} after ${timeoutMs} ms`),
    ),
  );
  const reasons = (await Promise.all(waits)).filter((reason) => reason !== undefined);
  const isLoading = reasons.length > 0 && !sessionPage.isCrashed && sessionPage.tab.isLoading;
  return isLoading ? [`the page had not loaded after ${timeoutMs} ms`] : [...new Set(reasons)];
}

/** Waits for the condition of the request. Returns the reason if the condition does not hold in time. */
async function awaitCondition(scene: FetchScene, condition: Condition): Promise<string[]> {
  const timeoutMs = Math.max(1, Math.floor(scene.progress.remaining() / 2));
  using waiting = new CommandProgress(timeoutMs, [scene.progress.signal]);
  try {
    await waitFor({ ...scene, progress: waiting }, condition);
    return [];
  } catch (thrown) {
    return [`wait: ${reasonOf(scene, thrown)}`];
  }
}

async function addFormats(fetching: Fetching, formats: readonly FetchFormat[]): Promise<void> {
  const { MARKDOWN, HTML, LINKS, SCREENSHOT, PDF } = FetchFormat;
  const wanted = new Set(formats.length > 0 ? formats : [MARKDOWN]);
  const steps: [string, boolean, (scene: FetchScene) => Promise<void>][] = [
    ["markdown", wanted.has(MARKDOWN), (scene) => addMarkdown(fetching, scene)],
    ["html", wanted.has(HTML) || wanted.has(LINKS), (scene) => addDocument(fetching, scene, wanted)],
    ["screenshot", wanted.has(SCREENSHOT), (scene) => addBinary(fetching, scene, "screenshot", takeScreenshot)],
    ["pdf", wanted.has(PDF), (scene) => addBinary(fetching, scene, "pdf", printPdf)],
  ];
  const needed = steps.filter(([, isNeeded]) => isNeeded);
  for (const [index, [name, , run]] of needed.entries()) {
    const { scene } = fetching;
    const share = index === needed.length - 1 ? 1 : formatShare;
    using progress = new CommandProgress(share * scene.progress.remaining(), [scene.progress.signal]);
    try {
      await progress.race(run({ ...scene, progress }));
    } catch (thrown) {
      fetching.reasons.push(`${name}: ${reasonOf(scene, thrown)}`);
    }
  }
}

async function addMarkdown({ answer, reasons }: Fetching, scene: FetchScene): Promise<void> {
  const { markdown, nextOffset } = await readPage(scene, create(ReadRequestSchema, { maxBytes: maxText }));
  answer.markdown = markdown;
  if (nextOffset !== undefined) answer.truncated.push(FetchFormat.MARKDOWN);
  if (markdown.trim() === "") reasons.push("the page shows no text");
}

async function addDocument({ answer }: Fetching, scene: FetchScene, wanted: ReadonlySet<FetchFormat>): Promise<void> {
  const document = Buffer.concat((await snapshotDom(scene)).parts);
  if (wanted.has(FetchFormat.HTML)) {
    // A character cut in two is dropped.
    answer.html = new TextDecoder().decode(document.subarray(0, maxText), { stream: document.length > maxText });
    if (document.length > maxText) answer.truncated.push(FetchFormat.HTML);
  }
  if (!wanted.has(FetchFormat.LINKS)) return;
  const { links, isCut } = findLinks(document.toString("utf8", 0, maxSearched), answer.url);
  answer.links = links;
  if (isCut || document.length > maxSearched) answer.truncated.push(FetchFormat.LINKS);
}

async function addBinary(
  fetching: Fetching,
  scene: FetchScene,
  name: "screenshot" | "pdf",
  take: (scene: FetchScene, request: ReturnType<typeof defaultCapture>) => Promise<RawCapture>,
): Promise<void> {
  const captured = await Captured.keep(await take(scene, defaultCapture()), scene.directory);
  if (captured.bytes > fetching.binaryLeft || scene.progress.isOver) {
    await captured[Symbol.asyncDispose]();
    if (!scene.progress.isOver) fetching.reasons.push(`${name}: screenshot and PDF together exceed ${maxBinary} bytes`);
    return;
  }
  fetching.binaryLeft -= captured.bytes;
  fetching.page[name] = captured;
}

const defaultCapture = () => create(CaptureRequestSchema, { kind: CaptureKind.SCREENSHOT });

/** Returns why a step of the fetch failed. Throws if the fetch has ended, because no further step can succeed. */
function reasonOf({ ended }: FetchScene, thrown: unknown, late?: string): string {
  if (ended.aborted) throw ended.reason;
  const failure: Failure = asFailure(thrown);
  return (failure.slug === "session-timeout" ? late : undefined) ?? failure.detail ?? failure.slug;
}
