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
  /** Refused as one that the browser does not have. */
  | { readonly kind: "unjudged" }
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

/** Decides by the parameters of a command. */
export type Rule = (params: Params, scene: PolicyScene) => Verdict;

const pass: Verdict = { kind: "pass" };
const refuse = (why: string): Verdict => ({ kind: "refuse", why });

/** To a client this closes the browser. */
export const close: Verdict = { kind: "close" };

/** The session's downloads go to the session, wherever the client would have them; who asks hears of them. */
export const keptDownloads: Verdict = { kind: "answer", result: {} };

/** Why a session of a target within another one's messages is refused. */
export const notFlat = "only flat sessions are served: pass flatten: true";

const local = "only http, https, about, data and blob addresses can be opened: a session reaches no local ones";

/** Addresses that a page may be sent to. */
const openable = /^(https?|about|data|blob):/i;

/** Chromium takes spaces and control characters before an address, and line ends within it, for nothing. */
function isLocal(url: unknown): boolean {
  if (typeof url !== "string") return false;
  const read = URL.canParse(url) ? new URL(url).href : url;
  return /^[a-z][a-z0-9+.-]*:/i.test(read) && !openable.test(read);
}

export const toOpenableAddress: Rule = ({ url }) => (isLocal(url) ? refuse(local) : pass);

export function createTarget(params: Params, scene: PolicyScene): Verdict {
  if (scene.pages >= mostPages) return refuse(`the session has ${scene.pages} pages, which is the most`);
  if (params.hidden === true) return refuse("hidden pages are not served");
  return toOpenableAddress(params, scene);
}

export function createBrowserContext(params: Params): Verdict {
  const { proxyServer, proxyBypassList, originsWithUniversalNetworkAccess } = params;
  if (proxyServer !== undefined || proxyBypassList !== undefined)
    return refuse("a context cannot have a proxy of its own: give the session one when it is created");
  if (originsWithUniversalNetworkAccess !== undefined)
    return refuse("a context cannot read what other sites do not share with it");
  // It goes with the client, however that goes.
  return { kind: "change", params: { ...params, disposeOnDetach: true } };
}

export const disposeBrowserContext: Rule = ({ browserContextId }, scene) =>
  typeof browserContextId === "string" && scene.ownsContext(browserContextId)
    ? pass
    : refuse("only a context that this client has made can be disposed of");

export const attachToTarget: Rule = ({ flatten }) => (flatten === true ? pass : refuse(notFlat));

/** Switched off it is nothing that could be flat. */
export function setAutoAttach(params: Params, scene: PolicyScene): Verdict {
  const isFlat = params.autoAttach === false || params.flatten === true;
  return isFlat ? withoutHiddenPages(params, scene) : refuse(notFlat);
}

/** What a client sees that says nothing of it: the protocol's own default. */
const usualFilter = [{ type: "browser", exclude: true }, { type: "tab", exclude: true }, {}];

/** Pages that are hidden are ours, and of no type that a client would miss. Of a filter the first entry that fits counts. */
export function withoutHiddenPages(params: Params, { hidesPages }: PolicyScene): Verdict {
  if (!hidesPages) return pass;
  const asked = Array.isArray(params.filter) ? params.filter : usualFilter;
  return { kind: "change", params: { ...params, filter: [{ type: "other", exclude: true }, ...asked] } };
}

/** Switched off it takes no filter. */
export const setDiscoverTargets: Rule = (params, scene) =>
  params.discover === true ? withoutHiddenPages(params, scene) : pass;

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

/** How many times slower a page may be: one that is 1,000 times slower takes seconds to take the command that undoes it. */
const mostThrottling = 100;

export const setCPUThrottlingRate: Rule = ({ rate }) =>
  typeof rate === "number" && rate > mostThrottling
    ? refuse(`a page that others use can be ${mostThrottling} times slower at the most`)
    : pass;

export const pageTrace: Rule = (_params, { isBrowserSession }) =>
  isBrowserSession ? refuse("the whole browser cannot be traced: trace a page, on a session of it") : pass;
