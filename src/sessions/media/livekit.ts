import { randomBytes } from "node:crypto";
import type { LiveKitConfig } from "../../platform/config.ts";
import { fail } from "../../platform/errors.ts";

/** Seconds for which a viewer can join with a token. */
const joinWithin = 60;
/** Seconds for which a worker can join or rejoin with a token. */
const publishWithin = 600;

/** Seconds for which a room stays open before the first participant joins. */
const emptyFor = 60;
/** Seconds for which a room stays open after the last participant leaves. */
const leftFor = 20;

/**
 * Maximum participants of a room: all viewers of a session, its worker, and participants that rejoin before the server
 * notices that they left.
 */
const maxParticipants = 48;

/** Seconds until a request to the media server times out. */
const answerWithin = 3;

/** Credentials of a viewer (`token`) and of the session's worker (`publishToken`) to join a room. */
export interface Admission {
  readonly url: string;
  readonly token: string;
  readonly publishToken: string;
  readonly room: string;
  readonly identity: string;
  /** Milliseconds within which the viewer must join. */
  readonly joinsWithin: number;
}

/** A viewer's participant in the room of its session. */
export interface Participant {
  /** Opens the room, and returns the credentials. Throws `feature-unavailable` if the room cannot be opened. */
  admit(): Promise<Admission>;
  /** Returns whether the viewer is in the room. Returns true if the server fails or does not respond. */
  isInRoom(): Promise<boolean>;
  /** Removes the viewer from the room. Called when the viewer's access ends. */
  leave(): void;
  /** Closes the room. Called when the session ends. */
  close(): void;
}

/** Returns the function that creates a viewer's participant in the room of a session on a LiveKit server. */
export function createParticipants({
  url,
  key,
  secret,
}: LiveKitConfig): (sessionId: string, viewerId: string) => Participant {
  // Loaded for the first viewer, so that gateways without a media server never load it.
  async function load() {
    const { AccessToken, RoomServiceClient, TrackSource, TwirpError } = await import("livekit-server-sdk");
    const rooms = new RoomServiceClient(url.replace(/^ws/, "http"), key, secret, { requestTimeout: answerWithin });
    return { AccessToken, TrackSource, TwirpError, rooms };
  }

  return (sessionId, viewerId) => {
    const room = `bs_${sessionId}`;
    // A separate identity per stream, so that the end of an earlier stream does not remove a viewer that has rejoined.
    const identity = `viewer:${viewerId}:${randomBytes(8).toString("hex")}`;
    let wasAdmitted = false;

    async function cleanUp(run: (rooms: Awaited<ReturnType<typeof load>>["rooms"]) => Promise<unknown>): Promise<void> {
      if (!wasAdmitted) return;
      // Failures are ignored: a participant that has left needs no removal, and a server that does not respond closes
      // empty rooms itself.
      await run((await load()).rooms).catch(() => undefined);
    }

    return {
      async admit() {
        const { AccessToken, TrackSource, rooms } = await load();
        wasAdmitted = true;
        const roomOptions = {
          name: room,
          emptyTimeout: emptyFor,
          departureTimeout: leftFor,
          maxParticipants: maxParticipants,
        };
        await rooms.createRoom(roomOptions).catch((cause: unknown) => {
          throw fail(
            "feature-unavailable",
            {},
            { detail: "the media server does not respond: watch through a view link, or try again later", cause },
          );
        });
        const viewer = new AccessToken(key, secret, { identity, ttl: joinWithin });
        viewer.addGrant({ room, roomJoin: true, canSubscribe: true, ...noPublishing });
        const worker = new AccessToken(key, secret, { identity: `worker:${sessionId}`, ttl: publishWithin });
        worker.addGrant({
          room,
          roomJoin: true,
          canSubscribe: false,
          canPublish: true,
          canPublishData: false,
          canPublishSources: [TrackSource.SCREEN_SHARE],
        });
        const tokens = { token: await viewer.toJwt(), publishToken: await worker.toJwt() };
        return { url, ...tokens, room, identity, joinsWithin: joinWithin * 1_000 };
      },
      async isInRoom() {
        const { rooms, TwirpError } = await load();
        return rooms.getParticipant(room, identity).then(
          () => true,
          (error: unknown) => !(error instanceof TwirpError && error.code === "not_found"),
        );
      },
      leave: () => void cleanUp((rooms) => rooms.removeParticipant(room, identity)),
      close: () => void cleanUp((rooms) => rooms.deleteRoom(room)),
    };
  };
}

const noPublishing = { canPublish: false, canPublishData: false, canUpdateOwnMetadata: false };
