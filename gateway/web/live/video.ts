import type { Picture } from "./picture.ts";

/**
 * In milliseconds. `start` and `nextFrame` are the times until the first and until each next picture, after which
 * frames replace the video. The others are the shortest and the longest pause before LiveKit is tried again.
 */
const times = { start: 15_000, nextFrame: 5_000, firstRetry: 3_000, lastRetry: 60_000 };

/** Joins a room. Returns a function that leaves the room. */
export type JoinRoom = (
  url: string,
  token: string,
  listener: { onVideo(video: HTMLVideoElement): void; onDisconnected(): void },
) => () => void;

declare global {
  /** Set by the script `livekit.js`, which is loaded on demand. */
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
  /** Requests video if `media` is `livekit`. Call at the start of each connection. */
  begin(media: string | undefined): void;
  join(room: { readonly url: string; readonly token: string }): void;
  /** Ends the video. Call when the connection has ended. */
  end(): void;
}

export function createVideo({ picture, send, onPicture }: VideoOptions): Video {
  let disconnect: (() => void) | undefined;
  let timer: number | undefined;
  let retry = times.firstRetry;
  let isOn = false;
  /** Identifies the current room, so that events of earlier rooms are ignored. */
  let roomNumber = 0;

  function leaveRoom(): void {
    roomNumber += 1;
    clearTimeout(timer);
    disconnect?.();
    disconnect = undefined;
  }

  function requestVideo(): void {
    if (!isOn || document.hidden) return;
    leaveRoom();
    send({ subscribe: { media: "livekit" } });
    timer = window.setTimeout(useFrames, times.start);
  }

  function useFrames(): void {
    leaveRoom();
    if (!isOn) return;
    send({ subscribe: { media: "frames" } });
    timer = window.setTimeout(requestVideo, retry * (0.5 + Math.random()));
    retry = Math.min(retry * 2, times.lastRetry);
  }

  function watch(): void {
    clearTimeout(timer);
    // A hidden tab paints nothing, so missing pictures are not a failure.
    if (!document.hidden) timer = window.setTimeout(useFrames, times.nextFrame);
  }

  function play(video: HTMLVideoElement): void {
    const mine = roomNumber;
    let isShown = false;
    const paint = (): void => {
      if (mine !== roomNumber) return;
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
    if (!document.hidden) requestVideo();
    else clearTimeout(timer);
  });

  return {
    begin(media) {
      isOn = media === "livekit";
      retry = times.firstRetry;
      leaveRoom();
      requestVideo();
    },
    join({ url, token }) {
      const mine = roomNumber;
      const isMine = () => mine === roomNumber;
      load().then(
        () => {
          if (!isMine()) return;
          disconnect = globalThis.joinRoom?.(url, token, {
            onVideo: (video) => isMine() && play(video),
            onDisconnected: () => isMine() && useFrames(),
          });
        },
        () => isMine() && useFrames(),
      );
    },
    end() {
      isOn = false;
      leaveRoom();
    },
  };
}
