import { Room, RoomEvent, Track } from "livekit-client";
import type { JoinRoom } from "../live/video.ts";

/** Joins a room of LiveKit and shows the one track of video in it: loaded by the live page when it is told of one. */
const joinRoom: JoinRoom = (url, token, { onVideo, onGone }) => {
  // All of one layer is wanted, whatever the size of an element that nobody sees.
  const room = new Room({ adaptiveStream: false, dynacast: false, disconnectOnPageLeave: true });
  const video = document.createElement("video");
  video.muted = true;
  video.playsInline = true;
  room
    .on(RoomEvent.TrackSubscribed, (track) => {
      if (track.kind !== Track.Kind.Video) return;
      // The picture is to be there at once: who drives sees what has come of it.
      track.receiver && Object.assign(track.receiver, { jitterBufferTarget: 0 });
      track.attach(video);
      void video.play().catch(() => undefined);
      onVideo(video);
    })
    .on(RoomEvent.Reconnecting, onGone)
    .on(RoomEvent.Disconnected, onGone);
  room.connect(url, token).catch(onGone);
  return () => {
    room.removeAllListeners();
    void room.disconnect();
    video.srcObject = null;
  };
};

Object.assign(globalThis, { joinRoom });
