import type { Picture } from "./picture.ts";

/**
 * Milliseconds to wait for the first picture, to wait for each next picture before frames replace the video, and to
 * retry LiveKit.
 */
const times = { start: 15_000, patience: 5_000, firstRetry: 3_000, lastRetry: 60_000 };

/** Joins a room. Resolves with a function that leaves the room. */
export type JoinRoom = (
  url: string,
  token: string,
  listener: { onVideo(video: HTMLVideoElement): void; onGone(): void },
) => () => void;

declare global {
  /** Created by the script of `livekit`, which is loaded on demand. */
  var joinRoom: JoinRoom | undefined;
}

let loading: Promise<void> | undefined;

function load(): Promise<void> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/live/livekit.js";
    script.onload = () => resolve();
    script.onerror = () => {
      loading = undefined;
      reject(new Error("the script did not load"));
    };
    document.head.append(script);
  });
  return loading;
}

export interface VideoOptions {
  readonly picture: Picture;
  send(message: object): void;
  onPicture(): void;
}

/** The picture over LiveKit. Frames replace the video if it fails. */
export interface Video {
  /** Sets the medium of pictures, at the start of each connection. */
  begin(media: string | undefined): void;
  join(room: { readonly url: string; readonly token: string }): void;
  /** Ends the video with its connection. */
  end(): void;
}

export function createVideo({ picture, send, onPicture }: VideoOptions): Video {
  let leave: (() => void) | undefined;
  let timer: number | undefined;
  let retry = times.firstRetry;
  let isOn = false;
  /** Identifies the current room, so that events of rooms left before are ignored. */
  let turn = 0;

  function drop(): void {
    turn += 1;
    clearTimeout(timer);
    leave?.();
    leave = undefined;
  }

  function ask(): void {
    if (!isOn || document.hidden) return;
    drop();
    send({ subscribe: { media: "livekit" } });
    timer = window.setTimeout(fallBack, times.start);
  }

  function fallBack(): void {
    drop();
    if (!isOn) return;
    send({ subscribe: { media: "frames" } });
    timer = window.setTimeout(ask, retry * (0.5 + Math.random()));
    retry = Math.min(retry * 2, times.lastRetry);
  }

  function watch(): void {
    clearTimeout(timer);
    // A hidden page paints nothing, so missing pictures are no failure.
    if (!document.hidden) timer = window.setTimeout(fallBack, times.patience);
  }

  function play(video: HTMLVideoElement): void {
    const mine = turn;
    let isShown = false;
    const paint = (): void => {
      if (mine !== turn) return;
      video.requestVideoFrameCallback(paint);
      picture.paint(video);
      onPicture();
      watch();
      if (isShown) return;
      isShown = true;
      retry = times.firstRetry;
      send({ subscribe: { media: "livekit", shown: true } });
    };
    video.requestVideoFrameCallback(paint);
  }

  document.addEventListener("visibilitychange", () => {
    if (!isOn) return;
    if (!document.hidden) ask();
    else clearTimeout(timer);
  });

  return {
    begin(media) {
      isOn = media === "livekit";
      retry = times.firstRetry;
      drop();
      ask();
    },
    join({ url, token }) {
      const mine = turn;
      const isMine = () => mine === turn;
      load().then(
        () => {
          if (!isMine()) return;
          leave = globalThis.joinRoom?.(url, token, {
            onVideo: (video) => isMine() && play(video),
            onGone: () => isMine() && fallBack(),
          });
        },
        () => isMine() && fallBack(),
      );
    },
    end() {
      isOn = false;
      drop();
    },
  };
}
