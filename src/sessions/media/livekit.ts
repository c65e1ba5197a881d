import { randomBytes } from "node:crypto";
import type { LiveKitConfig } from "../../platform/config.ts";
import { fail } from "../../platform/errors.ts";

/** Seconds: until a viewer has to have joined; for which a worker may join with a token, and join again. */
const joinWithin = 60;
const publishWithin = 600;

/** Seconds for which a room stays that nobody has come to yet, or that all have left. */
const emptyFor = 60;
const leftFor = 20;

/** All viewers of a session, its worker, and who joins again before the server knows that it had gone. */
const mostParticipants = 48;

/** Seconds that the media server has to answer. */
const answerWithin = 3;

/** What a viewer is to join with, and the session's worker. */
export interface Admission {
  readonly url: string;
  readonly token: string;
  readonly publishToken: string;
  readonly room: string;
  readonly identity: string;
  /** Milliseconds in which the viewer has to join. */
  readonly joinsWithin: number;
}

/** A viewer's right to be in the room of its session. */
export interface Seat {
  /** Opens the room, and gives what to join with. Throws `feature-unavailable` when the media server does not answer. */
  admit(): Promise<Admission>;
  /** Says whether the viewer is in the room: it is where the server does not answer. */
  isTaken(): Promise<boolean>;
  /** Removes the viewer from the room: its right has ended. */
  leave(): void;
  /** Closes the room: the session has ended. */
  close(): void;
}

/** Gives the seats of viewers in the rooms of a LiveKit server. */
export function createSeats({ url, key, secret }: LiveKitConfig): (sessionId: string, viewerId: string) => Seat {
  // It is loaded where there is a media server, and by the first viewer.
  let loading: ReturnType<typeof load> | undefined;
  async function load() {
    const { AccessToken, RoomServiceClient, TrackSource, TwirpError } = await import("livekit-server-sdk");
    const rooms = new RoomServiceClient(url.replace(/^ws/, "http"), key, secret, { requestTimeout: answerWithin });
    return { AccessToken, TrackSource, TwirpError, rooms };
  }

  return (sessionId, viewerId) => {
    const room = `bs_${sessionId}`;
    // A stream of its own each: the end of an earlier one is not to remove who has joined again.
    const identity = `viewer:${viewerId}:${randomBytes(8).toString("hex")}`;
    let wasAdmitted = false;

    async function tell(run: (rooms: Awaited<ReturnType<typeof load>>["rooms"]) => Promise<unknown>): Promise<void> {
      if (!wasAdmitted) return;
      loading ??= load();
      // Who is not there any more needs no removing; a server that does not answer forgets its rooms by itself.
      await run((await loading).rooms).catch(() => undefined);
    }

    return {
      async admit() {
        loading ??= load();
        const { AccessToken, TrackSource, rooms } = await loading;
        wasAdmitted = true;
        const wish = {
          name: room,
          emptyTimeout: emptyFor,
          departureTimeout: leftFor,
          maxParticipants: mostParticipants,
        };
        await rooms.createRoom(wish).catch((cause: unknown) => {
          throw fail("feature-unavailable", {}, { detail: "the media server does not answer", cause });
        });
        const viewer = new AccessToken(key, secret, { identity, ttl: joinWithin });
        viewer.addGrant({ ...{ room, roomJoin: true, canSubscribe: true }, ...noPublishing });
        const worker = new AccessToken(key, secret, { identity: `worker:${sessionId}`, ttl: publishWithin });
        worker.addGrant({
          ...{ room, roomJoin: true, canSubscribe: false, canPublish: true, canPublishData: false },
          canPublishSources: [TrackSource.SCREEN_SHARE],
        });
        const tokens = { token: await viewer.toJwt(), publishToken: await worker.toJwt() };
        return { url, ...tokens, room, identity, joinsWithin: joinWithin * 1_000 };
      },
      async isTaken() {
        loading ??= load();
        const { rooms, TwirpError } = await loading;
        return rooms.getParticipant(room, identity).then(
          () => true,
          (error: unknown) => !(error instanceof TwirpError && error.code === "not_found"),
        );
      },
      leave: () => void tell((rooms) => rooms.removeParticipant(room, identity)),
      close: () => void tell((rooms) => rooms.deleteRoom(room)),
    };
  };
}

const noPublishing = { canPublish: false, canPublishData: false, canUpdateOwnMetadata: false };
