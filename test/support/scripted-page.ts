import { CdpSession } from "../../workers/cdp/cdp-session.ts";
import { Changes } from "../../workers/pages/changes.ts";
import { SessionPage } from "../../workers/pages/session-page.ts";
import { Tab } from "../../workers/pages/tab.ts";

/** Returns a promise that never settles. */
export const never = <Value>(): Promise<Value> => Promise.withResolvers<Value>().promise;

/** Responses of a browser by method. Other commands are never answered. */
type Answers = Readonly<Record<string, (params: never) => unknown>>;

/** Creates a CDP session whose browser answers as scripted. */
export function scriptSession(answers: Answers = {}): CdpSession {
  return new CdpSession(async (method, params) => answers[method]?.(params as never) ?? never());
}

/** Creates responses to calls of our script in the page, by function name. */
export function inPage(functions: Readonly<Record<string, (call: PageCall) => unknown>>): Answers {
  return {
    "Page.createIsolatedWorld": () => ({ executionContextId: 1 }),
    "Runtime.callFunctionOn": (call: PageCall) => {
      const name = /return script \? script\.(\w+)/.exec(call.functionDeclaration)?.[1] ?? "";
      const value = functions[name]?.(call);
      return value === undefined ? undefined : { result: { value } };
    },
  };
}

/** Call of our script in a page. */
export interface PageCall {
  readonly functionDeclaration: string;
  /** Name of the script, and the arguments of its function. */
  readonly arguments: readonly { readonly value: Readonly<Record<string, unknown>> }[];
}

/** Creates a page whose browser answers as scripted. Its main frame is `T`. */
export function scriptPage(answers: Answers = {}) {
  const session = scriptSession(answers);
  const info = { targetId: "T", type: "page", url: "https://site.test/" };
  const tab = new Tab({ info, session, parent: undefined }, new Changes());
  const sessionPage = new SessionPage("page_1", tab, session);
  /** Commits another document. */
  const commit = (loaderId: string): void =>
    session.emit("Page.frameNavigated", { frame: { id: "T", loaderId, url: info.url } });
  return { session, tab, sessionPage, commit };
}
