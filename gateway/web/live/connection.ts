import type { Problem, Told } from "./messages.ts";

/** Milliseconds. A connection that is silent for longer than two beats and a half has broken without a word. */
const times = { firstRetry: 500, lastRetry: 10_000, beat: 10_000, silence: 25_000 };

/** Why a connection is refused for good. */
const over: Readonly<Record<string, string>> = {
  "session-destroyed": "The session has ended.",
  "expired-key": "The time of this link is up. Ask for another one.",
  "revoked-key": "This link was revoked.",
  "invalid-key":
    "This link is not good, or its session has ended some time ago. Copy all of it, or ask for another one.",
  "not-found": "This link is not good for the session.",
  conflict: "The session is shown in another tab of yours. Load this page again to go on here.",
};

const endings: Readonly<Record<string, string>> = {
  destroyed: "It was ended by who had started it.",
  expired: "Its time was up.",
  idle: "Nobody had used it for a while.",
  quota: "The account has no session time left.",
  crashed: "Its browser has crashed.",
  worker_lost: "The machine of its browser was lost.",
};

export interface ConnectionOptions {
  readonly token: string;
  readonly viewerKey: string;
  /** Hears what the service tells. */
  onTold(told: Told): void;
  /** Hears of a frame; `onShown` acknowledges it. */
  onFrame(message: Uint8Array, onShown: (sequence: number) => void): void;
  /** The connection has broken, and is made again. */
  onBreak(why: string): void;
  /** Nothing comes any more. */
  onOver(why: string): void;
}

/** The stream to the service: one that breaks is made again, one that was refused for good says why. */
export interface Connection {
  /** Sends a message; what is said while there is no connection is lost. */
  send(message: object): void;
  /** Bytes that the network has yet to take. */
  backlog(): number;
  /** Milliseconds that a message takes there and back; undefined before the first one has. */
  roundTrip(): number | undefined;
}

export function connect(options: ConnectionOptions): Connection {
  let socket: WebSocket | undefined;
  let timer: number | undefined;
  let retry = times.firstRetry;
  let heardAt = 0;
  let askedAt = 0;
  let roundTrip: number | undefined;
  let isOver = false;
  let why = "";

  function finish(words: string): void {
    isOver = true;
    clearTimeout(timer);
    options.onOver(words);
  }

  function refuse({ type = "", detail = "" }: Problem): void {
    const slug = type.split("/").at(-1) ?? "";
    const { [slug]: words } = over;
    if (words) finish(words);
    else if (slug === "tier-limit") why = `Too many watch already: ${detail}.`;
  }

  /** A browser says nothing of why a handshake was refused: any other request of the token is refused for the same reason. */
  async function askWhy(): Promise<void> {
    const answer = await fetch("/v1/sessions", { headers: { authorization: `Bearer ${options.token}` } });
    if (answer.status === 401) refuse(await answer.json());
  }

  function hear(from: WebSocket, data: string | ArrayBuffer): void {
    heardAt = Date.now();
    if (typeof data !== "string") {
      options.onFrame(new Uint8Array(data), (sequence) => sendTo(from, { ack: { sequence } }));
      return;
    }
    const told: Told = JSON.parse(data);
    if (told.hello) {
      retry = times.firstRetry;
      why = "";
    }
    if (told.heartbeat) roundTrip = performance.now() - askedAt;
    options.onTold(told);
    if (told.ended) finish(`The session has ended. ${endings[told.ended.reason ?? ""] ?? ""}`);
    if (told.error) refuse(told.error);
  }

  async function leave(wasOpen: boolean): Promise<void> {
    if (!wasOpen) await askWhy().catch(() => undefined);
    socket = undefined;
    if (isOver) return;
    options.onBreak(why || "The connection is being made again.");
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
    heardAt = Date.now();
    mine.binaryType = "arraybuffer";
    mine.onopen = () => {
      wasOpen = true;
      sendTo(mine, { join: { hidden: document.hidden, viewer_key: options.viewerKey } });
      beat();
    };
    mine.onmessage = ({ data }) => void (socket === mine && hear(mine, data));
    mine.onclose = () => void (socket === mine && leave(wasOpen));
  }

  function sendTo(to: WebSocket | undefined, message: object): void {
    if (to?.readyState === WebSocket.OPEN) to.send(JSON.stringify(message));
  }

  function beat(): void {
    if (!socket) return;
    if (Date.now() - heardAt > times.silence) {
      const silent = socket;
      socket = undefined;
      silent.close();
      void leave(true);
    } else {
      askedAt = performance.now();
      sendTo(socket, { heartbeat: {} });
    }
  }

  setInterval(beat, times.beat);
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
