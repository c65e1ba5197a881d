import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, test, vi } from "vitest";
import { CommandContextSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { InputEventSchema } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { ViewportSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import {
  CaptureKind,
  CaptureRequestSchema,
  FetchRequestSchema,
  InteractRequestSchema,
  NavigateRequestSchema,
  ObserveRequestSchema,
  ReadRequestSchema,
  WaitRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { BotCheckDetector } from "../../workers/bot-checks/bot-check-detector.ts";
import { ActionEffects } from "../../workers/driver/actions/action-effects.ts";
import { navigate } from "../../workers/driver/actions/navigate.ts";
import type { Scene } from "../../workers/driver/actions/scene.ts";
import { readSelection } from "../../workers/driver/actions/selection.ts";
import { snapshotDom } from "../../workers/driver/capture/dom-snapshot.ts";
import { captureScaledViewport } from "../../workers/driver/capture/screenshot.ts";
import { whileCaptureShown } from "../../workers/driver/capture/shown-element.ts";
import { callPage, mainFrame } from "../../workers/driver/elements/page-world.ts";
import { retryUntilTimeout } from "../../workers/driver/elements/reach.ts";
import { RefRegistry } from "../../workers/driver/elements/ref-registry.ts";
import { takeModelPicture } from "../../workers/driver/observe/model-picture.ts";
import { type ObserveScene, waitUntilSettled } from "../../workers/driver/observe/observe.ts";
import { snapshotPage } from "../../workers/driver/observe/page-snapshot.ts";
import { fetchPage } from "../../workers/fetch/page-fetch.ts";
import { FileChoosers, type FileChoosersParts } from "../../workers/files/file-choosers.ts";
import { inputOf } from "../../workers/input/page-input.ts";
import { SelectPopups } from "../../workers/input/select-popups.ts";
import { WorkerInputQueue } from "../../workers/input/worker-input-queue.ts";
import { ConsoleTap, consoleBounds } from "../../workers/pages/console-tap.ts";
import type { EventFeed } from "../../workers/pages/event-feed.ts";
import { type PageBrowser, type PageListener, PageRegistry } from "../../workers/pages/page-registry.ts";
import { CommandProgress } from "../../workers/pages/progress.ts";
import {
  CommandRunner,
  type CommandRunnerOptions,
  type ReceivedCommand,
} from "../../workers/session/command-runner.ts";
import { VariableStore } from "../../workers/variables/variable-store.ts";
import { atCall, type Begin, expectToTake, fakeTime, restoreTime } from "../support/faked-time.ts";
import { inPage, never, type PageCall, scriptPage, scriptSession } from "../support/scripted-page.ts";

// Needs its own process, because modules that others may have loaded are replaced.
vi.mock("node:timers/promises", () => import("../support/faked-time.ts"));
vi.mock("../../workers/driver/actions/navigate.ts", { spy: true });

beforeEach(fakeTime);
afterEach(restoreTime);

const action = { case: "tap", value: { selector: "#a" } } as const;
const condition = { case: "selector", value: { selector: "#a" } } as const;
const toB = create(NavigateRequestSchema, { url: "https://site.test/b" });
const { signal } = new AbortController();
const aim = { selector: "#a", frame: [], path: "action" };

/** A page with scripted answers, its session's pages, and a command with a timeout of 10 minutes. */
function open(answers?: Parameters<typeof scriptPage>[0]) {
  const page = scriptPage(answers);
  const { sessionPage, tab } = page;
  const progress = new CommandProgress(600_000, []);
  const refs = new RefRegistry();
  const found = {
    changes: tab.changes,
    active: sessionPage,
    find: () => sessionPage,
    openedBy: () => [],
    replace: never,
  };
  return {
    ...page,
    scene: { sessionPage, progress, refs } as unknown as ObserveScene,
    pages: found as unknown as PageRegistry,
  };
}

/** Navigates a page; `replace` is called when its renderer counts as hung. */
function navigateHung({ sessionPage, progress }: Scene, replace: () => void): void {
  const relay = { wasRefused: () => false, failureOf: () => undefined, refusalReasonOf: () => "private" as const };
  const pages = { replace } as unknown as PageRegistry;
  const downloads = { nameSince: () => Promise.resolve(undefined) };
  navigate({ sessionPage, progress, pages, relay, downloads, showRemedy: false }, toB).catch(() => undefined);
}

const unwaited = { [Symbol.dispose]: () => undefined };
const accepted = { accept: true, option: 0, files: ["a.txt"] } as unknown as LiveAnswer;

/** Answers dialogs immediately. Calls `onOver` when the page has not accepted the answer. */
const answering = (onOver: () => void) => ({
  holder: "ada",
  ask: (_question: unknown, give: (given: LiveAnswer | undefined) => Promise<void>) => {
    give(accepted).catch(onOver);
    return unwaited;
  },
});

/** Opens a file chooser. */
function chooseFile(onOver: () => void, answers?: Parameters<typeof open>[0]): void {
  const { session, tab } = open(answers);
  const parts = { dialogs: { begin: () => onOver }, questions: answering(onOver), files: { pathOf: () => "/a.txt" } };
  new FileChoosers(parts as FileChoosersParts).watchTab(tab, "page_1");
  session.emit("Page.fileChooserOpened", { mode: "selectSingle", frameId: "T", backendNodeId: 1 });
}

/** Takes the snapshot of a page that answers only calls of the given functions. */
function takeHungSnapshot(functions: Parameters<typeof inPage>[0]): Promise<unknown> {
  const { scene } = open(inPage(functions));
  const options = { isWhole: true, find: "", room: 1_000, timeMs: 100, mask: undefined };
  return snapshotPage(scene, mainFrame(scene), scene.refs, options);
}

const context = create(CommandContextSchema);

/** A command as a worker receives it. */
const received = <Request>(request: Request): ReceivedCommand<Request> => ({
  context,
  request,
  bytes: new Uint8Array(),
  caller: signal,
  onReplay: () => undefined,
});

/** The commands of a session whose page hangs. */
function commandsOfHung(): CommandRunner {
  const { pages } = open();
  return new CommandRunner({
    browser: { pages, challengeWatch: { isShownBy: () => false } },
    queue: {
      run: (_how: unknown, work: () => unknown) => work(),
      capture: (_how: unknown, work: () => unknown) => work(),
    },
    idleClock: { activity: () => unwaited },
    pause: { signal },
    control: { signal, learn: () => undefined, assertFree: () => undefined },
    variables: new VariableStore(),
    ended: signal,
    downloads: { begun: 0, nameSince: () => Promise.resolve(undefined) },
    showRemedy: false,
  } as unknown as CommandRunnerOptions);
}

/** Watches a page for bot checks. `look` returns the result of each check; the page hangs when it returns undefined. */
function watch(look: (nth: number) => object | undefined, onChange: () => void = () => undefined) {
  let looks = 0;
  const page = open({
    "Page.createIsolatedWorld": () => ({ executionContextId: 1 }),
    "Runtime.evaluate": () => {
      looks += 1;
      const seen = look(looks);
      const report = { isLoading: false, title: "", headings: [], text: "Text", controls: 0, links: 0, hasForm: false };
      return seen && { result: { value: { ...report, isCloudflare: false, isPerimeterX: false, ...seen } } };
    },
  });
  return { ...page, harness: new BotCheckDetector(page.tab, onChange) };
}

/** Waits by file and name of their duration. */
const rows: Readonly<Record<string, Begin>> = {
  "driver/actions/action-effects.ts busyMs": () => {
    const { pages, scene } = open();
    return new ActionEffects(pages, scene.sessionPage).settle(scene.progress, undefined);
  },
  "driver/actions/action-effects.ts openMs": () => {
    const { pages, scene, tab } = open();
    const effects = new ActionEffects(pages, scene.sessionPage);
    tab.windows += 1;
    return effects.settle(scene.progress, "Title");
  },
  "driver/actions/navigate.ts hungMs": (onOver) => navigateHung(open({ "Page.stopLoading": () => ({}) }).scene, onOver),
  "driver/actions/navigate.ts probeMs": (onOver) => {
    const { scene, sessionPage } = open({ "Page.stopLoading": () => ({}) });
    sessionPage.isUnresponsive = true;
    navigateHung(scene, onOver);
  },
  "driver/actions/selection.ts timeout": (onOver) => {
    const { scene } = open({
      "Page.createIsolatedWorld": () => ({ executionContextId: 1 }),
      "Runtime.evaluate": ({ timeout }: { timeout: number }) => sleep(timeout).then(onOver),
    });
    void readSelection(scene.sessionPage, scene.progress).catch(() => undefined);
  },
  "driver/capture/screenshot.ts longestPause": () => {
    const fails = async () => Promise.reject(new Error("Unable to capture screenshot"));
    const { scene } = open({ "Page.captureScreenshot": fails });
    const viewport = create(ViewportSchema, { width: 9, height: 9, deviceScaleFactor: 1 });
    return captureScaledViewport({ ...scene, viewport }, 9, 80);
  },
  "driver/capture/dom-snapshot.ts frameMs": () => {
    const readDocument = ({ arguments: [, options] }: PageCall) => {
      const html = `${options?.value.token}0;`;
      return { html, length: html.length, isWhole: false };
    };
    return snapshotDom(open(inPage({ readDocument })).scene);
  },
  "driver/capture/shown-element.ts elementMs": () => whileCaptureShown(open().scene, aim, never),
  "driver/elements/reach.ts sliceMs": (onOver) => {
    const onAttempt = atCall(2, onOver);
    void retryUntilTimeout(open().scene, async (ms) => {
      onAttempt();
      await sleep(ms);
      return { hindrance: "is not there" };
    });
  },
  "fetch/page-fetch.ts quietWithin": (onOver) => {
    const { scene } = open();
    vi.mocked(navigate).mockResolvedValueOnce({} as Awaited<ReturnType<typeof navigate>>);
    const fetchScene = { ...scene, ended: signal, challengeWatch: { afterCommand: onOver } };
    const request = create(FetchRequestSchema, { url: "https://site.test/" });
    void fetchPage(fetchScene as unknown as Parameters<typeof fetchPage>[0], request).catch(() => undefined);
  },
  "files/file-choosers.ts readMs": (onOver) => chooseFile(onOver),
  "files/file-choosers.ts answerMs": (onOver) => {
    const read = [{ result: { value: { accept: "", isFolder: false } } }];
    chooseFile(onOver, {
      "Page.createIsolatedWorld": () => ({ executionContextId: 1 }),
      "DOM.resolveNode": () => ({ object: { objectId: "1" } }),
      "Runtime.callFunctionOn": () => read.shift(),
    });
  },
  "bot-checks/bot-check-detector.ts checkMs": () => {
    const { harness, commit } = watch(() => undefined);
    commit("1");
    return harness.waitForResult();
  },
  "bot-checks/bot-check-detector.ts loadingMs": (onOver) => {
    watch((nth) => {
      if (nth === 3) onOver();
      return { isLoading: true };
    }).commit("1");
  },
  "bot-checks/bot-check-detector.ts vendorMs": (onOver) => {
    const { session } = watch((nth) => {
      if (nth === 4) onOver();
      return {};
    });
    const request = { url: "https://challenges.cloudflare.com/turnstile/v0/api.js" };
    session.emit("Network.requestWillBeSent", { requestId: "1", loaderId: "2", type: "Script", request });
  },
  "bot-checks/bot-check-detector.ts silentMs": (onOver) => {
    watch((nth) => {
      if (nth === 3) onOver();
      return nth === 1 ? { isCloudflare: true } : undefined;
    }).commit("1");
  },
  "bot-checks/bot-check-detector.ts keepDetectedMs": (onOver) => {
    const page = watch(
      (nth) => (nth === 1 ? { isCloudflare: true } : { isLoading: true }),
      () => (page.harness.detected ? page.commit("2") : onOver()),
    );
    page.commit("1");
  },
  "input/worker-input-queue.ts dropMs": (onOver) => {
    const { session } = open({ "Input.insertText": onOver });
    const events = [
      { case: "pointerDown", value: { x: 1, y: 1 } },
      { case: "pointerMove", value: { x: 9, y: 9 } },
      { case: "pointerUp", value: { x: 9, y: 9 } },
      { case: "text", value: { text: "a" } },
    ] as const;
    new WorkerInputQueue(() => inputOf(session)).push(events.map((event) => create(InputEventSchema, { event })));
  },
  "input/select-popups.ts checkMs": (onOver) => {
    const { sessionPage } = open({ "Page.createIsolatedWorld": atCall(2, onOver) });
    const desk = new SelectPopups(answering(onOver));
    desk.onInputHandled(sessionPage);
    desk.onInputHandled(sessionPage);
  },
  "input/select-popups.ts chooseMs": (onOver) => {
    const shown = [
      { result: { objectId: "1", className: "HTMLSelectElement" } },
      { result: { value: { name: "", options: [] } } },
    ];
    const { sessionPage } = open({
      "Page.createIsolatedWorld": () => ({ executionContextId: 1 }),
      "Runtime.callFunctionOn": () => shown.shift(),
    });
    new SelectPopups(answering(onOver)).onInputHandled(sessionPage);
  },
  "driver/observe/page-snapshot.ts frameMs": () => {
    const frames = [{ line: 0, indent: 0, ref: { epoch: 1, number: 1 }, clip: { x: 0, y: 0, width: 9, height: 9 } }];
    const takeSnapshot = () => ({ lines: ["- iframe"], frames, epoch: 1, doubtful: 0 });
    return takeHungSnapshot({ takeSnapshot, listenersRoot: () => "none" });
  },
  "driver/observe/page-snapshot.ts listenersMs.page": () =>
    takeHungSnapshot({ takeSnapshot: () => ({ lines: [], frames: [], epoch: 1, doubtful: 0 }) }),
  "driver/observe/model-picture.ts coverMs": async () => {
    const { scene } = open(inPage({ title: () => "" }));
    await callPage(scene, mainFrame(scene), "title");
    return takeModelPicture(scene);
  },
  "driver/observe/observe.ts settleMs": () => waitUntilSettled(open().scene),
  "pages/console-tap.ts windowMs": (onOver) => {
    const { session, tab } = open({ "Runtime.enable": atCall(2, onOver) });
    const tap = new ConsoleTap({ publish: () => undefined } as unknown as EventFeed, () => undefined);
    tap.watchTab(tab, "page_1");
    tap.setWatched(true);
    for (let line = 0; line < consoleBounds.linesPerSecond; line += 1)
      session.emit("Runtime.consoleAPICalled", { type: "log", args: [] });
  },
  "pages/page-registry.ts openMs": () => {
    const browser = { browserSession: scriptSession(), targets: {} } as PageBrowser;
    return new PageRegistry(browser, {} as PageListener).open(new CommandProgress(600_000, []));
  },
  "pages/tab.ts readyMs": () => open().tab.ready,
  "session/command-runner.ts navigateMs": () => commandsOfHung().navigate(received(toB)),
  "session/command-runner.ts interactMs": () =>
    commandsOfHung().interact(received(create(InteractRequestSchema, { action }))),
  "session/command-runner.ts waitMs": () => commandsOfHung().wait(received(create(WaitRequestSchema, { condition }))),
  "session/command-runner.ts captureMs": () =>
    commandsOfHung().capture(received(create(CaptureRequestSchema, { kind: CaptureKind.DOM_SNAPSHOT }))),
  "session/command-runner.ts observeMs": () => commandsOfHung().observe(received(create(ObserveRequestSchema))),
  "session/command-runner.ts readMs": () => commandsOfHung().read(received(create(ReadRequestSchema))),
  "session/command-runner.ts selectionMs": () => commandsOfHung().readSelection(context, signal),
};

test.each(Object.entries(rows))("%s bounds the wait for a page that hangs", async (place, begin) => {
  await expectToTake(`workers/${place}`, begin);
});
