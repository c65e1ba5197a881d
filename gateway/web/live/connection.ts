import type { Problem, ServerMessage } from "./messages.ts";

/**
 * Milliseconds. `firstRetry`, `lastRetry`: initial and maximum retry delay, before jitter. `heartbeat`: interval.
 * `silence`: time without data (2.5 heartbeats) after which a connection is considered broken.
 */
const times = { firstRetry: 500, lastRetry: 10_000, heartbeat: 10_000, silence: 25_000 };

/** Reasons why a connection is refused permanently. */
const refusals: Readonly<Record<string, string>> = {
  "session-destroyed": "The session has ended.",
  "expired-key": "This link has expired. Ask for another one.",
  "revoked-key": "This link was revoked.",
  "invalid-key": "This link is not valid, or its session ended some time ago. Copy all of it, or ask for another one.",
  "not-found": "This link is not valid for the session.",
  conflict: "The session is shown in another tab of yours. Reload this page to continue here.",
};

const endings: Readonly<Record<string, string>> = {
  destroyed: "It was ended by its owner.",
  expired: "Its time limit was reached.",
  idle: "It was idle for too long.",
  quota: "The account has no session time left.",
  crashed: "Its browser has crashed.",
  worker_drained: "The machine that ran its browser was stopped for maintenance.",
  worker_lost: "The machine that ran its browser was lost.",
};

export interface ConnectionOptions {
  readonly token: string;
  readonly viewerKey: string;
  /** Called with each text message of the service. */
  onMessage(received: ServerMessage): void;
  /** Called with each frame; `onShown` acknowledges the frame. */
  onFrame(message: Uint8Array, onShown: (sequence: number) => void): void;
  /** Called when the connection has broken, before it is reopened. */
  onBreak(why: string): void;
  /** Called when the connection will not be reopened. */
  onOver(why: string): void;
}

/** The stream to the service. Reopens a broken connection; reports the reason of a permanent refusal. */
export interface Connection {
  /** Sends a message. Drops the message if there is no connection. */
  send(message: object): void;
  /** Returns the number of bytes that wait to be sent over the network. */
  backlog(): number;
  /** Returns the round-trip time in milliseconds; undefined before the first measurement. */
  roundTrip(): number | undefined;
}

export function connect(options: ConnectionOptions): Connection {
  let socket: WebSocket | undefined;
  let timer: number | undefined;
  let retry = times.firstRetry;
  let receivedAt = 0;
  let heartbeatSentAt = 0;
  let roundTrip: number | undefined;
  let isOver = false;
  let why = "";

  function finish(text: string): void {
    isOver = true;
    clearTimeout(timer);
    options.onOver(text);
  }

  function refuse({ type = "", detail = "" }: Problem): void {
    const slug = type.split("/").at(-1) ?? "";
    const { [slug]: text } = refusals;
    if (text) finish(text);
    else if (slug === "tier-limit") why = `Too many viewers are connected: ${detail}.`;
  }

  /**
   * Sends another request with the same token to learn why the handshake failed, because browsers hide the response to
   * a handshake.
   */
  async function fetchRefusal(): Promise<void> {
    const answer = await fetch("/v1/sessions", { headers: { authorization: `Bearer ${options.token}` } });
    if (answer.status === 401) refuse(await answer.json());
  }

  function receive(from: WebSocket, data: string | ArrayBuffer): void {
    receivedAt = Date.now();
    if (typeof data !== "string") {
      options.onFrame(new Uint8Array(data), (sequence) => sendTo(from, { ack: { sequence } }));
      return;
    }
    const received: ServerMessage = JSON.parse(data);
    if (received.hello) {
      retry = times.firstRetry;
      why = "";
    }
    if (received.heartbeat) roundTrip = performance.now() - heartbeatSentAt;
    options.onMessage(received);
    if (received.ended) finish(`The session has ended. ${endings[received.ended.reason ?? ""] ?? ""}`);
    if (received.error) refuse(received.error);
  }

  async function onClosed(wasOpen: boolean): Promise<void> {
    if (!wasOpen) await fetchRefusal().catch(() => undefined);
    socket = undefined;
    if (isOver) return;
    options.onBreak(why || "Reconnecting.");
    timer = window.setTimeout(open, retry * (0.5 + Math.random()));
    retry = Math.min(retry * 2, times.lastRetry);
  }

  function open(): void {
    clearTimeout(timer);
    if (isOver || socket) return;
    const address = `${location.origin.replace("http", "ws")}/v1/live`;
    const mine = new WebSocket(address, ["pilothouse.v1", `bearer.${options.token}`]);
    let wasOpen = false;
    socket = mine;
    receivedAt = Date.now();
    mine.binaryType = "arraybuffer";
    mine.onopen = () => {
      wasOpen = true;
      sendTo(mine, { join: { hidden: document.hidden, viewer_key: options.viewerKey } });
      sendHeartbeat();
    };
    mine.onmessage = ({ data }) => void (socket === mine && receive(mine, data));
    mine.onclose = () => void (socket === mine && onClosed(wasOpen));
  }

  function sendTo(to: WebSocket | undefined, message: object): void {
    if (to?.readyState === WebSocket.OPEN) to.send(JSON.stringify(message));
  }

  function sendHeartbeat(): void {
    if (!socket) return;
    if (Date.now() - receivedAt > times.silence) {
      const silent = socket;
      socket = undefined;
      silent.close();
      void onClosed(true);
    } else {
      heartbeatSentAt = performance.now();
      sendTo(socket, { heartbeat: {} });
    }
  }

  setInterval(sendHeartbeat, times.heartbeat);
  document.addEventListener("visibilitychange", () => {
    if (socket) sendTo(socket, { visibility: { hidden: document.hidden } });
    else if (!document.hidden) open();
  });
  addEventListener("online", open);
  if (options.token === "") finish("This link is not complete. Open it again, or copy all of it.");
  else open();
  return {
    send: (message) => sendTo(socket, message),
    backlog: () => socket?.bufferedAmount ?? 0,
    roundTrip: () => roundTrip,
  };
}
