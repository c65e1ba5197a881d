import { CdpSession } from "../../workers/cdp/cdp-session.ts";
import { Changes } from "../../workers/pages/changes.ts";
import { SessionPage } from "../../workers/pages/session-page.ts";
import { Tab } from "../../workers/pages/tab.ts";

/** Never settles. */
export const never = <Value>(): Promise<Value> => Promise.withResolvers<Value>().promise;

/** What a browser answers to commands, by method; commands that it lacks are never answered. */
type Answers = Readonly<Record<string, (params: never) => unknown>>;

/** Makes a CDP session of a browser that answers as scripted. */
export function scriptSession(answers: Answers = {}): CdpSession {
  return new CdpSession(async (method, params) => answers[method]?.(params as never) ?? never());
}

/** Answers that are made of calls of our script in the page, by the name of its function. */
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

/** A call of our script in a page. */
export interface PageCall {
  readonly functionDeclaration: string;
  /** The script's name, and the arguments of its function. */
  readonly arguments: readonly { readonly value: Readonly<Record<string, unknown>> }[];
}

/** Makes a page whose browser answers as scripted. Its main frame is `T`. */
export function scriptPage(answers: Answers = {}) {
  const session = scriptSession(answers);
  const info = { targetId: "T", type: "page", url: "https://site.test/" };
  const tab = new Tab({ info, session, parent: undefined }, new Changes());
  const sessionPage = new SessionPage("page_1", tab, session);
  /** Shows another document. */
  const commit = (loaderId: string): void =>
    session.emit("Page.frameNavigated", { frame: { id: "T", loaderId, url: info.url } });
  return { session, tab, sessionPage, commit };
}
