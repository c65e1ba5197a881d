import { onTestFinished, test, vi } from "vitest";
import { createClipboard } from "../../gateway/web/live/clipboard.ts";
import { connect } from "../../gateway/web/live/connection.ts";
import { createDownloads } from "../../gateway/web/live/downloads.ts";
import type { Picture } from "../../gateway/web/live/picture.ts";
import { createVideo, type JoinRoom } from "../../gateway/web/live/video.ts";
import type { Shown } from "../../gateway/web/live/view.ts";
import { expectWait, settle, type Wait } from "../support/wait.ts";

const nothing = () => undefined;

/** Element members that the scripts use. */
class StubElement {
  textContent = "";
  onload: () => void = nothing;
  press: () => void = nothing;
  readonly click = nothing;
  readonly setAttribute = nothing;
  readonly replaceChildren = nothing;
  readonly append = (child?: unknown) => child instanceof StubElement && child.onload();
  readonly querySelectorAll = () => [];
  addEventListener(_: string, listener: () => void): void {
    this.press = listener;
  }
}

/** WebSocket members that the scripts use. */
class StubSocket {
  static readonly OPEN = 1;
  static readonly opened: StubSocket[] = [];
  readonly readyState = 1;
  onopen: () => void = nothing;
  readonly send = vi.fn<(text: string) => void>();
  readonly close = vi.fn();

  constructor() {
    StubSocket.opened.push(this);
  }
}

const made: StubElement[] = [];

/** Stubs the browser globals that the live page uses. */
function stubBrowser(): void {
  const element = () => {
    const one = new StubElement();
    made.push(one);
    return one;
  };
  const document = { hidden: false, addEventListener: nothing, createElement: element, getElementById: element };
  const globals = {
    window: globalThis,
    location: { origin: "http://localhost" },
    addEventListener: nothing,
    document: { ...document, head: new StubElement() },
    HTMLUListElement: StubElement,
    WebSocket: StubSocket,
  };
  for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value);
  onTestFinished(() => void vi.unstubAllGlobals());
}

/** Opens a connection that receives no messages. */
function openConnection(): StubSocket {
  connect({ token: "t", viewerKey: "k", onMessage: nothing, onFrame: nothing, onBreak: nothing, onOver: nothing });
  const [socket = new StubSocket()] = StubSocket.opened.splice(0);
  socket.onopen();
  return socket;
}

/** Starts a video, and calls `end` when frames are requested instead. */
function beginVideo(end: () => void) {
  const send = (message: object) => JSON.stringify(message).includes("frames") && end();
  // Stub with the members that a video uses.
  const picture = { paint: nothing } as unknown as Picture;
  const video = createVideo({ picture, send, onPicture: nothing });
  video.begin("livekit");
  return video;
}

const waits: Readonly<Record<string, Wait>> = {
  "the second heartbeat of a viewer": {
    ms: 10_000,
    begin(end) {
      const { send } = openConnection();
      send.mockImplementation(() => end());
    },
  },
  "a silent connection": {
    ms: 30_000,
    begin: (end) => void openConnection().close.mockImplementation(end),
  },
  "the first picture of a video": { ms: 15_000, begin: (end) => void beginVideo(end) },
  "a picture of a stalled video": {
    ms: 5_000,
    async begin(end) {
      const painting = Promise.withResolvers<() => void>();
      const join: JoinRoom = (_url, _token, { onVideo }) => {
        // Stub with the members that a video uses.
        onVideo({ requestVideoFrameCallback: painting.resolve } as unknown as HTMLVideoElement);
        return nothing;
      };
      vi.stubGlobal("joinRoom", join);
      beginVideo(end).join({ url: "", token: "" });
      (await painting.promise)();
    },
  },
  "a selection to copy": {
    ms: 5_000,
    begin(end) {
      const write = async (items: Promise<Blob>[]) => void items[0]?.catch(end);
      vi.stubGlobal("navigator", { clipboard: { write } });
      vi.stubGlobal("ClipboardItem", function ClipboardItem(types: Record<string, Promise<Blob>>) {
        return types["text/plain"];
      });
      createClipboard({ send: nothing, pushPaste: nothing, showMessage: nothing }).copy();
    },
  },
  "a browser that saves a download": {
    ms: 60_000,
    async begin(end) {
      const fetched = Promise.withResolvers<Blob>();
      const show = createDownloads({ fetch: () => fetched.promise, showMessage: nothing, focusPicture: nothing });
      const control = { state: "human_control", holder_client_id: "anna" };
      const downloads = [{ id: "1", file_name: "a.bin", bytes: 1, status: "finished" }];
      // Stub with the fields that the panel uses.
      show({ own: { client_id: "anna" }, state: { control, downloads } } as unknown as Shown);
      vi.spyOn(URL, "revokeObjectURL").mockImplementation(end);
      made.find(({ textContent }) => textContent === "Save")?.press();
      fetched.resolve(new Blob());
      await settle(() => vi.getTimerCount() > 0);
    },
  },
};

test.each(Object.entries(waits))("%s has a timeout of the specified length", async (_, wait) => {
  stubBrowser();
  await expectWait(wait);
});
