import type { CDPSession as PlaywrightSession } from "playwright-core";

/** Sends a command and gives what is answered; the types are those of the protocol. */
export type Send = PlaywrightSession["send"];

/** A target of the browser, as the protocol tells of it. */
export interface TargetInfo {
  readonly targetId: string;
  /** `page`, `iframe`, `worker`, `service_worker`, `shared_worker`, ... */
  readonly type: string;
  readonly url: string;
  /** The page that has opened it. */
  readonly openerId?: string;
  /** The context that it is in. */
  readonly browserContextId?: string;
}

/** A frame as it is when a document has come to it. */
interface CommittedFrame {
  readonly id: string;
  readonly parentId?: string;
  readonly loaderId: string;
  readonly url: string;
  /** With its `#`; absent when there is none. */
  readonly urlFragment?: string;
}

/** What is told of a request; a document's goes by the name of its loader. */
interface RequestEvent {
  readonly requestId: string;
  readonly loaderId: string;
  /** Absent for workers. */
  readonly frameId?: string;
  /** `Document`, `Image`, `EventSource`, ... */
  readonly type?: string;
}

/** A value that a page writes to its console. */
export interface LoggedValue {
  readonly type: string;
  readonly value?: unknown;
  /** What stands for a value that JSON cannot hold, such as `NaN`. */
  readonly unserializableValue?: string;
  readonly description?: string;
}

/** What a page lets the mouse carry. */
interface DragData {
  readonly items: { mimeType: string; data: string }[];
  readonly dragOperationsMask: number;
}

/** What is listened to, with what it tells. */
export interface WireEvents {
  "Target.attachedToTarget": {
    readonly sessionId: string;
    readonly targetInfo: TargetInfo;
    /** It runs only when it is told to. */
    readonly waitingForDebugger: boolean;
  };
  "Target.detachedFromTarget": { readonly sessionId: string };
  /** A popup will open; told while the page's domain is enabled. */
  "Page.windowOpen": { readonly windowFeatures: readonly string[] };
  "Page.frameAttached": { readonly frameId: string; readonly parentFrameId: string };
  "Page.frameNavigated": { readonly frame: CommittedFrame };
  "Page.navigatedWithinDocument": { readonly frameId: string; readonly url: string };
  /** `swap` when the frame goes on in another process. */
  "Page.frameDetached": { readonly frameId: string; readonly reason: "remove" | "swap" };
  /** `name` is `DOMContentLoaded`, `load`, ... */
  "Page.lifecycleEvent": { readonly frameId: string; readonly loaderId: string; readonly name: string };
  "Page.frameRequestedNavigation": { readonly frameId: string; readonly disposition: string };
  /** `navigationType` is `differentDocument`, `sameDocument`, `reload`, ... */
  "Page.frameStartedNavigating": {
    readonly frameId: string;
    readonly loaderId: string;
    readonly navigationType: string;
  };
  "Page.frameStoppedLoading": { readonly frameId: string };
  "Page.javascriptDialogOpening": {
    readonly type: string;
    readonly message: string;
    /** What the field of a prompt has in it at first. */
    readonly defaultPrompt?: string;
  };
  "Page.javascriptDialogClosed": { readonly result: boolean };
  "Page.fileChooserOpened": {
    readonly frameId: string;
    readonly mode: "selectSingle" | "selectMultiple";
    /** The input that it is for; absent where a script has opened it without one. */
    readonly backendNodeId?: number;
  };
  /** The page has got another size. */
  "Page.frameResized": object;
  /** A picture of a page, in base64, as its screencast takes them. `sessionId` is what acknowledges it. */
  "Page.screencastFrame": {
    readonly data: string;
    readonly metadata: {
      readonly deviceWidth: number;
      readonly deviceHeight: number;
      /** Seconds since the Unix epoch. */
      readonly timestamp?: number;
    };
    readonly sessionId: number;
  };
  /** A page begins to drag something, and we have asked to carry it ourselves. */
  "Input.dragIntercepted": { readonly data: DragData };
  "Inspector.targetCrashed": object;
  "Network.requestWillBeSent": RequestEvent & { readonly request: { readonly url: string } };
  "Network.responseReceived": RequestEvent & {
    readonly response: {
      readonly url: string;
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
    };
  };
  "Network.loadingFinished": { readonly requestId: string };
  "Network.loadingFailed": { readonly requestId: string };
  "Runtime.consoleAPICalled": { readonly type: string; readonly args: readonly LoggedValue[] };
  "Browser.downloadWillBegin": { readonly guid: string; readonly suggestedFilename: string; readonly frameId: string };
  "Browser.downloadProgress": {
    readonly guid: string;
    readonly receivedBytes: number;
    /** 0 where it is not known. */
    readonly totalBytes: number;
    readonly state: "inProgress" | "completed" | "canceled";
  };
}

type Listener = (params: never) => void;

/** Our own session of a target, or of the whole browser. */
export class CdpSession {
  /** Rejects when the browser refuses, goes, or answers at too great a length. */
  readonly send: Send;
  readonly #listeners = new Map<string, Listener[]>();

  constructor(send: (method: string, params?: object) => Promise<unknown>) {
    // The boundary where the protocol's word is taken for what an answer holds.
    this.send = send as Send;
  }

  /** Hears of an event from now on. */
  on<Name extends keyof WireEvents>(name: Name, listener: (params: WireEvents[Name]) => void): void {
    const listeners = this.#listeners.get(name);
    if (listeners) listeners.push(listener);
    else this.#listeners.set(name, [listener]);
  }

  /** Whether anybody hears of an event. */
  hears(name: string): boolean {
    return this.#listeners.has(name);
  }

  /** Tells of an event that has come. */
  emit(name: string, params: unknown): void {
    // The same boundary for events.
    for (const listener of this.#listeners.get(name) ?? []) listener(params as never);
  }
}
