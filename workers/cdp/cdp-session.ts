import type { CDPSession as PlaywrightSession } from "playwright";

/** Sends a command and resolves with its result, typed by the protocol. */
export type Send = PlaywrightSession["send"];

export interface TargetInfo {
  readonly targetId: string;
  /** `page`, `iframe`, `worker`, `service_worker`, `shared_worker`, ... */
  readonly type: string;
  readonly url: string;
  /** Id of the target that opened this target. */
  readonly openerId?: string;
  readonly browserContextId?: string;
}

/** A frame at the commit of a document. */
interface CommittedFrame {
  readonly id: string;
  readonly parentId?: string;
  readonly loaderId: string;
  readonly url: string;
  /** Fragment with its `#`. Absent if the URL has no fragment. */
  readonly urlFragment?: string;
}

/** Fields of a request event. For a document, the request id equals the loader id. */
interface RequestEvent {
  readonly requestId: string;
  readonly loaderId: string;
  /** Absent for workers. */
  readonly frameId?: string;
  /** `Document`, `Image`, `EventSource`, ... */
  readonly type?: string;
}

/** A value that a page logged to its console or threw. */
export interface LoggedValue {
  readonly type: string;
  readonly value?: unknown;
  /** Text for a value that JSON cannot express, such as `NaN`. */
  readonly unserializableValue?: string;
  readonly description?: string;
}

/** An uncaught exception of a page. */
export interface ThrownException {
  readonly text: string;
  readonly exception?: LoggedValue;
  /** URL of the script. */
  readonly url?: string;
  /** From 0. */
  readonly lineNumber: number;
  /** From 0. */
  readonly columnNumber: number;
}

interface DragData {
  readonly items: { mimeType: string; data: string }[];
  readonly dragOperationsMask: number;
}

/** Parameters of the events that we subscribe to. */
export interface CdpEvents {
  "Target.attachedToTarget": {
    readonly sessionId: string;
    readonly targetInfo: TargetInfo;
    /** Whether the target is paused until `Runtime.runIfWaitingForDebugger`. */
    readonly waitingForDebugger: boolean;
  };
  "Target.detachedFromTarget": { readonly sessionId: string };
  /** A popup will open. Sent while the Page domain is enabled. */
  "Page.windowOpen": { readonly windowFeatures: readonly string[] };
  "Page.frameAttached": { readonly frameId: string; readonly parentFrameId: string };
  "Page.frameNavigated": { readonly frame: CommittedFrame };
  "Page.navigatedWithinDocument": { readonly frameId: string; readonly url: string };
  /** The reason is `swap` if the frame moves to another process. */
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
    readonly defaultPrompt?: string;
  };
  "Page.javascriptDialogClosed": { readonly result: boolean };
  "Page.fileChooserOpened": {
    readonly frameId: string;
    readonly mode: "selectSingle" | "selectMultiple";
    /** Id of the file input. Absent if a script opened the chooser without a file input. */
    readonly backendNodeId?: number;
  };
  "Page.frameResized": object;
  /** A screencast frame, in base64. `sessionId` is the number to acknowledge. */
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
  /** The page painted, or its layers changed. Sent while the LayerTree domain is enabled. */
  "LayerTree.layerPainted": object;
  "LayerTree.layerTreeDidChange": object;
  /** The page starts a drag while drag interception is enabled. */
  "Input.dragIntercepted": { readonly data: DragData };
  "Inspector.targetCrashed": object;
  /** After a redirect, the event is sent again with the same request id. `timestamp` is in seconds. */
  "Network.requestWillBeSent": RequestEvent & {
    readonly request: { readonly url: string; readonly method: string };
    readonly timestamp: number;
    readonly redirectResponse?: { readonly status: number };
  };
  "Network.responseReceived": RequestEvent & {
    readonly timestamp: number;
    readonly response: {
      readonly url: string;
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
    };
  };
  "Network.loadingFinished": { readonly requestId: string; readonly timestamp: number };
  "Network.loadingFailed": {
    readonly requestId: string;
    readonly timestamp: number;
    readonly errorText: string;
    readonly canceled?: boolean;
    readonly corsErrorStatus?: { readonly corsError: string };
  };
  "Fetch.requestPaused": { readonly requestId: string; readonly resourceType: string };
  "Runtime.consoleAPICalled": { readonly type: string; readonly args: readonly LoggedValue[] };
  "Runtime.exceptionThrown": { readonly exceptionDetails: ThrownException };
  "Browser.downloadWillBegin": { readonly guid: string; readonly suggestedFilename: string; readonly frameId: string };
  "Browser.downloadProgress": {
    readonly guid: string;
    readonly receivedBytes: number;
    /** Size of the file. 0 if unknown. */
    readonly totalBytes: number;
    readonly state: "inProgress" | "completed" | "canceled";
  };
}

type Listener = (params: never) => void;

/** The worker's own CDP session of a target or of the whole browser. */
export class CdpSession {
  /**
   * Rejects if the browser refuses the command or exits, if the target closes or crashes, or if the answer is
   * oversized.
   */
  readonly send: Send;
  readonly #listeners = new Map<string, Listener[]>();

  constructor(send: (method: string, params?: object) => Promise<unknown>) {
    // The boundary where results get the protocol's types.
    this.send = send as Send;
  }

  on<Name extends keyof CdpEvents>(name: Name, listener: (params: CdpEvents[Name]) => void): void {
    const listeners = this.#listeners.get(name);
    if (listeners) listeners.push(listener);
    else this.#listeners.set(name, [listener]);
  }

  /** Whether an event has a listener. */
  listensTo(name: string): boolean {
    return this.#listeners.has(name);
  }

  /** Passes an event to its listeners. */
  emit(name: string, params: unknown): void {
    // The boundary where event parameters get the protocol's types.
    for (const listener of this.#listeners.get(name) ?? []) listener(params as never);
  }
}
