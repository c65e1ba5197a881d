import { Room, RoomEvent, Track } from "livekit-client";
import type { JoinRoom } from "../live/video.ts";

/** Joins a LiveKit room and plays its only video track. The live page loads this script on demand. */
const joinRoom: JoinRoom = (url, token, { onVideo, onDisconnected }) => {
  // The video element is hidden, so its size must not select the quality.
  const room = new Room({ adaptiveStream: false, dynacast: false, disconnectOnPageLeave: true });
  const video = document.createElement("video");
  video.muted = true;
  video.playsInline = true;
  room
    .on(RoomEvent.TrackSubscribed, (track) => {
      if (track.kind !== Track.Kind.Video) return;
      // Disables the jitter buffer, because the person in control needs the lowest delay.
      track.receiver && Object.assign(track.receiver, { jitterBufferTarget: 0 });
      track.attach(video);
      void video.play().catch(() => undefined);
      onVideo(video);
    })
    .on(RoomEvent.Reconnecting, onDisconnected)
    .on(RoomEvent.Disconnected, onDisconnected);
  room.connect(url, token).catch(onDisconnected);
  return () => {
    room.removeAllListeners();
    void room.disconnect();
    video.srcObject = null;
  };
};

Object.assign(globalThis, { joinRoom });
