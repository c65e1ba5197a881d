// Script of our extension's page. Captures a tab and sends the video to the media server, with which the worker
// exchanges the session descriptions, so that the page needs no LiveKit token.

/** The extension APIs that are used. The `id` of a target is its CDP target id. */
declare const chrome: {
  readonly debugger: { getTargets(): Promise<{ readonly id: string; readonly tabId?: number }[]> };
  readonly runtime: { reload(): void };
  readonly tabCapture: { getMediaStreamId(options: { targetTabId: number }): Promise<string> };
};

/** CDP target id of a tab, and the size of its page in CSS pixels. */
export interface ShownTab {
  readonly targetId: string;
  readonly width: number;
  readonly height: number;
}

const rate = 30;
const maxBits = 3_000_000;
const connection = new RTCPeerConnection();
const ending = Promise.withResolvers<string>();

/** Resolves with the reason when the connection to the media server is lost. */
export const ended = ending.promise;

let sender: RTCRtpSender | undefined;
let shown: { readonly targetId: string; readonly track: MediaStreamTrack } | undefined;

connection.addEventListener("connectionstatechange", () => {
  if (connection.connectionState === "failed" || connection.connectionState === "closed")
    ending.resolve("the connection to the media server was lost");
});

/**
 * Captures a tab. If the tab navigates to another site meanwhile, capturing fails, but the browser still counts the tab
 * as captured. Reloading the extension makes the tab available again, and closes this page.
 */
function capture(tab: ShownTab): Promise<MediaStreamTrack> {
  return begin(tab).catch((error: unknown) => {
    chrome.runtime.reload();
    throw error;
  });
}

async function begin({ targetId, width, height }: ShownTab): Promise<MediaStreamTrack> {
  const tabId = (await chrome.debugger.getTargets()).find(({ id }) => id === targetId)?.tabId;
  if (tabId === undefined) throw new Error("the tab is closed");
  const mandatory = {
    chromeMediaSource: "tab",
    chromeMediaSourceId: await chrome.tabCapture.getMediaStreamId({ targetTabId: tabId }),
    // The browser would scale the video to any other size, which costs a CPU core.
    minWidth: width,
    maxWidth: width,
    minHeight: height,
    maxHeight: height,
    maxFrameRate: rate,
  };
  // The cast is needed, because these constraints of Chromium are not part of any standard.
  const constraints = { video: { mandatory } } as MediaStreamConstraints;
  const [track] = (await navigator.mediaDevices.getUserMedia(constraints)).getVideoTracks();
  if (!track) throw new Error("expected a video track of the tab, got none");
  track.contentHint = "detail";
  return track;
}

/** Captures a tab and creates the session description that offers its video to the media server. */
export async function offer(tab: ShownTab): Promise<{ readonly sdp: string; readonly trackId: string }> {
  const track = await capture(tab);
  shown = { targetId: tab.targetId, track };
  const sendEncodings = [{ maxBitrate: maxBits, maxFramerate: rate }];
  const transceiver = connection.addTransceiver(track, { direction: "sendonly", sendEncodings });
  sender = transceiver.sender;
  const { codecs = [] } = RTCRtpSender.getCapabilities("video") ?? {};
  transceiver.setCodecPreferences(codecs.filter(({ mimeType }) => /\/(vp8|rtx)$/i.test(mimeType)));
  const offered = await connection.createOffer();
  await connection.setLocalDescription(offered);
  return { sdp: offered.sdp ?? "", trackId: track.id };
}

export function setAnswer(sdp: string): Promise<void> {
  return connection.setRemoteDescription({ type: "answer", sdp });
}

export function addCandidate(candidate: string): Promise<void> {
  return connection.addIceCandidate({ candidate, sdpMid: "0", sdpMLineIndex: 0 });
}

/** Switches to another tab, or to a new size of the tab. */
export async function captureTab(tab: ShownTab): Promise<void> {
  // A tab can be captured only once at a time.
  if (shown?.targetId === tab.targetId) shown.track.stop();
  const track = await capture(tab);
  await sender?.replaceTrack(track);
  shown?.track.stop();
  shown = { targetId: tab.targetId, track };
}
