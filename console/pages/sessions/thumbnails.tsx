import { useEffect, useRef, useState } from "react";
import { type Session, SessionService, SessionStatus } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useStream } from "../../api/stream.ts";

/** Maximum number of sessions in a stream of thumbnails. */
const maxSessions = 20;

export type ThumbnailUrls = ReadonlyMap<string, string>;

/** Follows small pictures of the first `maxSessions` running sessions. Returns URLs of the pictures by session. */
export function useThumbnails(sessions: readonly Session[]): ThumbnailUrls {
  const [urls, setUrls] = useState<ThumbnailUrls>(new Map());
  const held = useRef(new Map<string, string>());
  const sessionId = sessions
    .filter(({ status }) => status === SessionStatus.LIVE || status === SessionStatus.PAUSED)
    .slice(0, maxSessions)
    .map(({ id }) => id)
    .sort();
  useStream(SessionService.method.watchThumbnails, {
    id: sessionId.length === 0 ? undefined : sessionId.join(),
    request: () => ({ sessionId }),
    onMessage: ({ sessionId: id, contentType, data }) => {
      // Releases the picture that is replaced, and those of sessions that have ended.
      for (const [other, url] of held.current) {
        if (other !== id && sessionId.includes(other)) continue;
        URL.revokeObjectURL(url);
        held.current.delete(other);
      }
      held.current.set(id, URL.createObjectURL(new Blob([new Uint8Array(data)], { type: contentType })));
      setUrls(new Map(held.current));
    },
  });
  useEffect(() => {
    const made = held.current;
    return () => {
      for (const url of made.values()) URL.revokeObjectURL(url);
      made.clear();
    };
  }, []);
  return urls;
}

/** The picture of a session, or an empty frame of its size. */
export function Thumbnail({ url }: { readonly url: string | undefined }) {
  return (
    <span className="block aspect-video w-full overflow-hidden rounded-md border border-line bg-sunken">
      {url !== undefined && <img src={url} alt="" className="size-full object-contain" />}
    </span>
  );
}
