/** What is used of the interfaces that an extension's page has; `id` of a target is the protocol's. */
declare const chrome: {
  readonly debugger: { getTargets(): Promise<{ readonly id: string; readonly tabId?: number }[]> };
  readonly runtime: { reload(): void };
  readonly tabCapture: { getMediaStreamId(options: { targetTabId: number }): Promise<string> };
};

/** A tab, by its target, and how large its page is in CSS pixels. */
export interface ShownTab {
  readonly targetId: string;
  readonly width: number;
  readonly height: number;
}

/** What the page of our extension is asked for. */
export interface CaptureControl {
  /** Begins with a tab. */
  offer(tab: ShownTab): Promise<{ readonly sdp: string; readonly trackId: string }>;
  answer(sdp: string): Promise<void>;
  addCandidate(candidate: string): Promise<void>;
  /** Goes on with a tab, or with another size of it. */
  show(tab: ShownTab): Promise<void>;
  /** Resolves when it has ended by itself, with why. */
  readonly ended: Promise<string>;
}

/** Runs in the page of our extension, which knows no token: sends pictures of a tab to whom the worker has it connect to. */
export function captureScript(): CaptureControl {
  const rate = 30;
  const mostBits = 3_000_000;
  const connection = new RTCPeerConnection();
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  let sender: RTCRtpSender | undefined;
  let shown: { readonly targetId: string; readonly track: MediaStreamTrack } | undefined;

  connection.addEventListener("connectionstatechange", () => {
    if (connection.connectionState === "failed" || connection.connectionState === "closed") end("the way was lost");
  });

  /**
   * A tab that goes to another site just when its capture begins cannot be captured, and is taken for captured by the
   * browser from then on, until the extension is loaded anew. That ends this page.
   */
  function capture(tab: ShownTab): Promise<MediaStreamTrack> {
    return begin(tab).catch((error: unknown) => {
      chrome.runtime.reload();
      throw error;
    });
  }

  async function begin({ targetId, width, height }: ShownTab): Promise<MediaStreamTrack> {
    const tabId = (await chrome.debugger.getTargets()).find(({ id }) => id === targetId)?.tabId;
    if (tabId === undefined) throw new Error("the tab has gone");
    const mandatory = {
      chromeMediaSource: "tab",
      chromeMediaSourceId: await chrome.tabCapture.getMediaStreamId({ targetTabId: tabId }),
      // Any other size than the page's own is made by scaling, at the cost of a core.
      ...{ minWidth: width, maxWidth: width, minHeight: height, maxHeight: height },
      maxFrameRate: rate,
    };
    // Chromium's own constraints, which no standard has.
    const constraints = { video: { mandatory } } as MediaStreamConstraints;
    const [track] = (await navigator.mediaDevices.getUserMedia(constraints)).getVideoTracks();
    if (!track) throw new Error("the tab has no picture");
    track.contentHint = "detail";
    return track;
  }

  return {
    ended,
    async offer(tab) {
      const track = await capture(tab);
      shown = { targetId: tab.targetId, track };
      const sendEncodings = [{ maxBitrate: mostBits, maxFramerate: rate }];
      const transceiver = connection.addTransceiver(track, { direction: "sendonly", sendEncodings });
      sender = transceiver.sender;
      const { codecs = [] } = RTCRtpSender.getCapabilities("video") ?? {};
      transceiver.setCodecPreferences(codecs.filter(({ mimeType }) => /\/(vp8|rtx)$/i.test(mimeType)));
      const offer = await connection.createOffer();
      await connection.setLocalDescription(offer);
      return { sdp: offer.sdp ?? "", trackId: track.id };
    },
    answer: (sdp) => connection.setRemoteDescription({ type: "answer", sdp }),
    addCandidate: (candidate) => connection.addIceCandidate({ candidate, sdpMid: "0", sdpMLineIndex: 0 }),
    async show(tab) {
      // A tab is captured once at a time.
      if (shown?.targetId === tab.targetId) shown.track.stop();
      const track = await capture(tab);
      await sender?.replaceTrack(track);
      shown?.track.stop();
      shown = { targetId: tab.targetId, track };
    },
  };
}
