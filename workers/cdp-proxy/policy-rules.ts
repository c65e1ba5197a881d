import { maxPages } from "../pages/page-registry.ts";
import type { Params } from "./client-command.ts";

/** Decision about a client's command. */
export type PolicyDecision =
  | { readonly kind: "pass" }
  /** Forwarded with changed parameters. */
  | { readonly kind: "change"; readonly params: Params }
  /** Answered without forwarding. */
  | { readonly kind: "answer"; readonly result: object }
  | { readonly kind: "refuse"; readonly why: string }
  /** The policy does not list the method. Refused like a method that the browser does not have. */
  | { readonly kind: "unlisted" }
  /** Answered, then the client is disconnected, as if the browser had closed. */
  | { readonly kind: "close" };

/** Facts about the client and its session that a rule can use. */
export interface PolicyScene {
  /** Whether the command is on a browser session rather than a target session. */
  readonly isBrowserSession: boolean;
  ownsContext(id: string): boolean;
  /** Whether the browser has internal pages that clients must not see. */
  readonly hidesPages: boolean;
  /** Number of pages of the session, including pages in contexts of clients. */
  readonly pages: number;
  /** Returns the path of a session file, or undefined if no file has the name. */
  fileOf(name: string): string | undefined;
}

/** Decides on a command by its parameters. */
export type Rule = (params: Params, scene: PolicyScene) => PolicyDecision;

const pass: PolicyDecision = { kind: "pass" };
const refuse = (why: string): PolicyDecision => ({ kind: "refuse", why });

export const close: PolicyDecision = { kind: "close" };

/**
 * Decision on download settings: not forwarded, so that the session keeps its download directory. `CdpClient` records
 * whether the client enables download events.
 */
export const keptDownloads: PolicyDecision = { kind: "answer", result: {} };

/** Reason for refusing nested (non-flat) CDP sessions. */
export const notFlat = "only flat sessions are supported: pass flatten: true";

const local = "only http, https, about, data and blob addresses can be opened: sessions cannot open local addresses";

/** Schemes that a page may open. */
const openable = /^(https?|about|data|blob):/i;

/**
 * Returns whether an address has a scheme that pages may not open, such as `file:`. The address is normalized first,
 * because Chromium ignores leading spaces, control characters and line ends.
 */
function isLocal(url: unknown): boolean {
  if (typeof url !== "string") return false;
  const read = URL.canParse(url) ? new URL(url).href : url;
  return /^[a-z][a-z0-9+.-]*:/i.test(read) && !openable.test(read);
}

export const toOpenableAddress: Rule = ({ url }) => (isLocal(url) ? refuse(local) : pass);

export function createTarget(params: Params, scene: PolicyScene): PolicyDecision {
  if (scene.pages >= maxPages) return refuse(`the session already has ${scene.pages} pages, the maximum`);
  if (params.hidden === true) return refuse("hidden pages are not supported");
  return toOpenableAddress(params, scene);
}

export function createBrowserContext(params: Params): PolicyDecision {
  const { proxyServer, proxyBypassList, originsWithUniversalNetworkAccess } = params;
  if (proxyServer !== undefined || proxyBypassList !== undefined)
    return refuse("a context cannot have its own proxy: set the proxy when creating the session");
  if (originsWithUniversalNetworkAccess !== undefined)
    return refuse("a context cannot be given unlimited cross-origin access");
  // The context is disposed of when the client disconnects.
  return { kind: "change", params: { ...params, disposeOnDetach: true } };
}

export const disposeBrowserContext: Rule = ({ browserContextId }, scene) =>
  typeof browserContextId === "string" && scene.ownsContext(browserContextId)
    ? pass
    : refuse("a client can dispose of only the contexts that it created");

export const attachToTarget: Rule = ({ flatten }) => (flatten === true ? pass : refuse(notFlat));

/** Requires flat sessions, unless auto-attach is being disabled. */
export function setAutoAttach(params: Params, scene: PolicyScene): PolicyDecision {
  const isFlat = params.autoAttach === false || params.flatten === true;
  return isFlat ? withoutHiddenPages(params, scene) : refuse(notFlat);
}

/** The protocol's default target filter. */
const usualFilter = [{ type: "browser", exclude: true }, { type: "tab", exclude: true }, {}];

/** Excludes hidden pages (type `other`). The exclusion is first, because the first matching entry applies. */
export function withoutHiddenPages(params: Params, { hidesPages }: PolicyScene): PolicyDecision {
  if (!hidesPages) return pass;
  const requested = Array.isArray(params.filter) ? params.filter : usualFilter;
  return { kind: "change", params: { ...params, filter: [{ type: "other", exclude: true }, ...requested] } };
}

/** Excludes hidden pages only when discovery is enabled, because disabling accepts no filter. */
export const setDiscoverTargets: Rule = (params, scene) =>
  params.discover === true ? withoutHiddenPages(params, scene) : pass;

/**
 * Returns the paths of the session files that a client names, or a refusal if a file does not exist. Only the last
 * segment of each name is used.
 */
function takeFiles(paths: unknown, { fileOf }: PolicyScene): string[] | { readonly refusal: PolicyDecision } {
  const found: string[] = [];
  for (const path of Array.isArray(paths) ? paths : []) {
    const name = String(path).split(/[/\\]/).at(-1) ?? "";
    const file = fileOf(name);
    if (file === undefined) {
      const how = `PUT it to the session's files first, then pass its file name`;
      return { refusal: refuse(`the session has no file ${JSON.stringify(name.slice(0, 255))}: ${how}`) };
    }
    found.push(file);
  }
  return found;
}

export const setFileInputFiles: Rule = (params, scene) => {
  const files = takeFiles(params.files, scene);
  return "refusal" in files ? files.refusal : { kind: "change", params: { ...params, files } };
};

export const dispatchDragEvent: Rule = (params, scene) => {
  const data = typeof params.data === "object" && params.data !== null ? params.data : {};
  const paths: unknown = Reflect.get(data, "files");
  if (paths === undefined) return pass;
  const files = takeFiles(paths, scene);
  return "refusal" in files ? files.refusal : { kind: "change", params: { ...params, data: { ...data, files } } };
};

/** Maximum CPU throttling. At 1,000, a page needs seconds to handle the command that undoes the throttling. */
const maxThrottling = 100;

export const setCPUThrottlingRate: Rule = ({ rate }) =>
  typeof rate === "number" && rate > maxThrottling
    ? refuse(`expected a rate of at most ${maxThrottling} for a page that others share`)
    : pass;

export const pageTrace: Rule = (_params, { isBrowserSession }) =>
  isBrowserSession ? refuse("the whole browser cannot be traced: trace a page on its own CDP session") : pass;
