import { mostPages } from "../pages/page-book.ts";
import type { Params } from "./client-command.ts";

/** What becomes of a client's command. */
export type Verdict =
  | { readonly kind: "pass" }
  /** Passed on with other parameters than the client's. */
  | { readonly kind: "change"; readonly params: Params }
  /** Answered by us; the browser never hears of it. */
  | { readonly kind: "answer"; readonly result: object }
  | { readonly kind: "refuse"; readonly why: string }
  /** Answered, and then the client's connection ends: to it, this closes the browser. */
  | { readonly kind: "close" };

/** What a rule looks at beside the parameters. */
export interface PolicyScene {
  /** The session is one of the whole browser, not of a target. */
  readonly isBrowserSession: boolean;
  /** Whether a context is one that this client has made. */
  ownsContext(id: string): boolean;
  /** The browser has pages of ours that no client is to see. */
  readonly hidesPages: boolean;
  /** How many pages the session has, those of clients' own contexts among them. */
  readonly pages: number;
  /** Where a file of the session is, by its name; undefined when there is none. */
  fileOf(name: string): string | undefined;
}

type Rule = (params: Params, scene: PolicyScene) => Verdict;

const pass: Verdict = { kind: "pass" };
const refuse = (why: string): Verdict => ({ kind: "refuse", why });
const never =
  (why: string): Rule =>
  () =>
    refuse(why);
const nothing: Rule = () => ({ kind: "answer", result: {} });

const local = "only http, https, about, data and blob addresses can be opened: a session reaches no local ones";
const notThisBrowser = "this would change the browser beyond the session's pages";
const notItsMachine = "a session's browser tells nothing of its machine";
const flat = "only flat sessions are served: pass flatten: true";

/** Addresses that a page may be sent to. */
const openable = /^(https?|about|data|blob):/i;

/** Chromium takes spaces and control characters before an address, and line ends within it, for nothing. */
function isLocal(url: unknown): boolean {
  if (typeof url !== "string") return false;
  const read = URL.canParse(url) ? new URL(url).href : url;
  return /^[a-z][a-z0-9+.-]*:/i.test(read) && !openable.test(read);
}

const toAddress: Rule = ({ url }) => (isLocal(url) ? refuse(local) : pass);

function createTarget(params: Params, scene: PolicyScene): Verdict {
  if (scene.pages >= mostPages) return refuse(`the session has ${scene.pages} pages, which is the most`);
  if (params.hidden === true) return refuse("hidden pages are not served");
  return toAddress(params, scene);
}

function createBrowserContext(params: Params): Verdict {
  const { proxyServer, proxyBypassList, originsWithUniversalNetworkAccess } = params;
  if (proxyServer !== undefined || proxyBypassList !== undefined)
    return refuse("a context cannot have a proxy of its own: give the session one when it is created");
  if (originsWithUniversalNetworkAccess !== undefined) return refuse(notThisBrowser);
  // It goes with the client, however that goes.
  return { kind: "change", params: { ...params, disposeOnDetach: true } };
}

const disposeBrowserContext: Rule = ({ browserContextId }, scene) =>
  typeof browserContextId === "string" && scene.ownsContext(browserContextId)
    ? pass
    : refuse("only a context that this client has made can be disposed of");

const flatAlone: Rule = ({ flatten }) => (flatten === true ? pass : refuse(flat));

/** Switched off it is nothing that could be flat. */
function flatAutoAttach(params: Params, scene: PolicyScene): Verdict {
  const isFlat = params.autoAttach === false || params.flatten === true;
  return isFlat ? withoutHidden(params, scene) : refuse(flat);
}

/** What a client sees that says nothing of it: the protocol's own default. */
const usualFilter = [{ type: "browser", exclude: true }, { type: "tab", exclude: true }, {}];

/** Pages that are hidden are ours, and of no type that a client would miss. Of a filter the first entry that fits counts. */
function withoutHidden(params: Params, { hidesPages }: PolicyScene): Verdict {
  if (!hidesPages) return pass;
  const asked = Array.isArray(params.filter) ? params.filter : usualFilter;
  return { kind: "change", params: { ...params, filter: [{ type: "other", exclude: true }, ...asked] } };
}

/** Switched off it takes no filter. */
const discover: Rule = (params, scene) => (params.discover === true ? withoutHidden(params, scene) : pass);

/** The session's files of those names: only the last part of a path counts, whatever machine it was meant for. */
function takeFiles(paths: unknown, { fileOf }: PolicyScene): string[] | { readonly refusal: Verdict } {
  const found: string[] = [];
  for (const path of Array.isArray(paths) ? paths : []) {
    const name = String(path).split(/[/\\]/).at(-1) ?? "";
    const file = fileOf(name);
    if (file === undefined) {
      const how = `PUT it to the session's files first, and name it by its last part`;
      return { refusal: refuse(`the session has no file ${JSON.stringify(name.slice(0, 255))}: ${how}`) };
    }
    found.push(file);
  }
  return found;
}

const setFileInputFiles: Rule = (params, scene) => {
  const files = takeFiles(params.files, scene);
  return "refusal" in files ? files.refusal : { kind: "change", params: { ...params, files } };
};

const dispatchDragEvent: Rule = (params, scene) => {
  const data = typeof params.data === "object" && params.data !== null ? params.data : {};
  const paths: unknown = Reflect.get(data, "files");
  if (paths === undefined) return pass;
  const files = takeFiles(paths, scene);
  return "refusal" in files ? files.refusal : { kind: "change", params: { ...params, data: { ...data, files } } };
};

const tracing: Rule = (_params, { isBrowserSession }) =>
  isBrowserSession ? refuse("the whole browser cannot be traced: trace a page, on a session of it") : pass;

const rules: Readonly<Record<string, Rule>> = {
  "Browser.close": () => ({ kind: "close" }),
  // The session's downloads go to the session, wherever the client would have them; who asks hears of them.
  "Browser.setDownloadBehavior": nothing,
  "Page.setDownloadBehavior": nothing,
  "Browser.crash": never(notThisBrowser),
  "Browser.crashGpuProcess": never(notThisBrowser),
  "Browser.executeBrowserCommand": never(notThisBrowser),
  "Browser.getBrowserCommandLine": never(notItsMachine),
  "Target.createTarget": createTarget,
  "Target.createBrowserContext": createBrowserContext,
  "Target.disposeBrowserContext": disposeBrowserContext,
  "Target.attachToTarget": flatAlone,
  "Target.setAutoAttach": flatAutoAttach,
  "Target.setDiscoverTargets": discover,
  "Target.getTargets": withoutHidden,
  "Target.sendMessageToTarget": never(flat),
  "Target.setRemoteLocations": never(notThisBrowser),
  "Target.exposeDevToolsProtocol": never("a page cannot be given the DevTools protocol"),
  "Target.openDevTools": never(notThisBrowser),
  "Page.navigate": toAddress,
  "Network.loadNetworkResource": toAddress,
  "DOM.setFileInputFiles": setFileInputFiles,
  "Input.dispatchDragEvent": dispatchDragEvent,
  "Tracing.start": tracing,
};

/** Domains none of whose commands is served, and why. `PWA` opens files of the machine in an app. */
const refusedDomains: Readonly<Record<string, string>> = {
  Extensions: notThisBrowser,
  PWA: notThisBrowser,
  SystemInfo: notItsMachine,
  Tethering: notThisBrowser,
};

/** What a client may do while a person holds control: it reads, and prepares to. */
const reading = new Set([
  ...["Accessibility.enable", "Accessibility.disable", "Accessibility.getFullAXTree", "Accessibility.getPartialAXTree"],
  ...["Browser.getVersion", "Browser.getWindowForTarget", "Browser.setDownloadBehavior"],
  ...["DOM.enable", "DOM.disable", "DOM.getDocument", "DOM.getFlattenedDocument", "DOM.describeNode"],
  ...["DOM.getBoxModel", "DOM.getContentQuads", "DOM.getOuterHTML", "DOM.querySelector", "DOM.querySelectorAll"],
  ...["DOMSnapshot.enable", "DOMSnapshot.disable", "DOMSnapshot.captureSnapshot"],
  ...["Log.enable", "Log.disable", "Network.enable", "Network.disable", "Network.getCookies"],
  ...["Network.getResponseBody", "Page.enable", "Page.disable", "Page.captureScreenshot", "Page.captureSnapshot"],
  ...["Page.getFrameTree", "Page.getLayoutMetrics", "Page.getNavigationHistory", "Page.setLifecycleEventsEnabled"],
  ...["Performance.enable", "Performance.disable", "Performance.getMetrics", "Runtime.enable", "Runtime.disable"],
  ...["Runtime.runIfWaitingForDebugger", "Storage.getCookies", "Target.attachToBrowserTarget", "Target.attachToTarget"],
  ...["Target.detachFromTarget", "Target.getBrowserContexts", "Target.getTargetInfo", "Target.getTargets"],
  ...["Target.setAutoAttach", "Target.setDiscoverTargets"],
]);

/** Says why a command is not carried out while a person holds control; undefined for one that only reads. */
export function refusalUnderControl(method: string): string | undefined {
  return reading.has(method)
    ? undefined
    : "a person holds control of the session: until it is given back, clients only read";
}

/** What a command is answered that had not ended when a person took control. */
export const refusalAtTakeover = "a person has taken control of the session: how far the command has come is not known";

/** Says what becomes of a command. `read` gives its parameters, which most rules do without. */
export function judge(method: string, read: () => Params, scene: PolicyScene): Verdict {
  const domain = method.slice(0, method.indexOf("."));
  const why = Object.hasOwn(refusedDomains, domain) ? refusedDomains[domain] : undefined;
  if (why !== undefined) return refuse(why);
  const rule = Object.hasOwn(rules, method) ? rules[method] : undefined;
  return rule ? rule(read(), scene) : pass;
}
