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
}

/** What is listened to, with what it tells. */
export interface WireEvents {
  "Target.attachedToTarget": { readonly sessionId: string; readonly targetInfo: TargetInfo };
  "Target.detachedFromTarget": { readonly sessionId: string };
  /** A popup will open; told while the page's domain is enabled. */
  "Page.windowOpen": { readonly windowFeatures: readonly string[] };
  "Browser.downloadWillBegin": { readonly guid: string; readonly suggestedFilename: string };
  "Browser.downloadProgress": {
    readonly guid: string;
    readonly receivedBytes: number;
    readonly state: "inProgress" | "completed" | "canceled";
  };
}

type Listener = (params: never) => void;

/** Our own session of a target, or of the whole browser. */
export class CdpSession {
  /** Rejects when the browser refuses, goes, or answers at too great a length. */
  readonly send: Send;
  readonly #listeners = new Map<string, Listener>();

  constructor(send: (method: string, params?: object) => Promise<unknown>) {
    // The boundary where the protocol's word is taken for what an answer holds.
    this.send = send as Send;
  }

  /** Hears of an event, in place of whoever heard of it before. */
  on<Name extends keyof WireEvents>(name: Name, listener: (params: WireEvents[Name]) => void): void {
    this.#listeners.set(name, listener);
  }

  /** Tells of an event that has come. */
  emit(name: string, params: unknown): void {
    // The same boundary for events.
    this.#listeners.get(name)?.(params as never);
  }
}
