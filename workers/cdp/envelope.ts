/** A message of a browser, read no deeper than is needed to know whose it is: most of those of others are never parsed. */
export interface Envelope {
  /** All of it. */
  readonly bytes: Buffer;
  /** Of an answer: which command it answers. */
  readonly id: number | undefined;
  /** Of an event: its name. */
  readonly method: string;
  /** The target's session; undefined for the browser's own. */
  readonly sessionId: string | undefined;
}

/** Longer than what Chromium writes before all else, and behind all else. */
const headBytes = 128;
const tailBytes = 128;

const answerHead = /^\{"id":(\d+),/;
const eventHead = /^\{"method":"([^"]+)"/;

/** Within a text a quotation mark is escaped, and behind the members of an inner object there are two braces. */
const sessionTail = /,"sessionId":"([^"\\]+)"\}$/;

/** Reads the outside of a message: Chromium writes `id` or `method` before all else, and `sessionId` behind all else. */
export function readEnvelope(bytes: Buffer): Envelope {
  const head = bytes.toString("latin1", 0, headBytes);
  const tail = bytes.toString("latin1", Math.max(0, bytes.length - tailBytes));
  const id = answerHead.exec(head)?.[1];
  const method = eventHead.exec(head)?.[1];
  if (id === undefined && method === undefined) throw new Error("the browser has written what is no message");
  return {
    bytes,
    id: id === undefined ? undefined : Number(id),
    method: method ?? "",
    sessionId: sessionTail.exec(tail)?.[1],
  };
}

/** The members of a message between `id` and `sessionId`: what is passed on, under another id, as it is. */
export function innerBytes({ bytes, id, sessionId }: Envelope): Buffer {
  const from = id === undefined ? 1 : `{"id":${id},`.length;
  const behind = sessionId === undefined ? 1 : `,"sessionId":"${sessionId}"}`.length;
  return bytes.subarray(from, bytes.length - behind);
}
