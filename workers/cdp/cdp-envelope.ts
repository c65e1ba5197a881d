/** A browser message, parsed only as far as needed for routing: most messages of CDP clients are never parsed fully. */
export interface Envelope {
  readonly bytes: Buffer;
  /** Id of the answered command. Undefined for an event. */
  readonly id: number | undefined;
  /** Name of the event. Empty for an answer. */
  readonly method: string;
  /** Session of the target. Undefined for the browser's own session. */
  readonly sessionId: string | undefined;
}

/** Bytes read at each end of a message: more than Chromium writes before and after the payload. */
const headBytes = 128;
const tailBytes = 128;

const answerHead = /^\{"id":(\d+),/;
const eventHead = /^\{"method":"([^"]+)"/;

/**
 * Matches the session id at the end of a message, but never page content: quotation marks in strings are escaped, and
 * an inner object would end in two braces.
 */
const sessionTail = /,"sessionId":"([^"\\]+)"\}$/;

/** Reads the envelope of a message. Chromium writes `id` or `method` first and `sessionId` last. */
export function readEnvelope(bytes: Buffer): Envelope {
  const head = bytes.toString("latin1", 0, headBytes);
  const tail = bytes.toString("latin1", Math.max(0, bytes.length - tailBytes));
  const id = answerHead.exec(head)?.[1];
  const method = eventHead.exec(head)?.[1];
  if (id === undefined && method === undefined)
    throw new Error("expected a message with an id or a method from the browser");
  return {
    bytes,
    id: id === undefined ? undefined : Number(id),
    method: method ?? "",
    sessionId: sessionTail.exec(tail)?.[1],
  };
}

/** Returns the JSON of all members except `id` and `sessionId`, without the outer braces. */
export function innerBytes({ bytes, id, sessionId }: Envelope): Buffer {
  const from = id === undefined ? 1 : `{"id":${id},`.length;
  const behind = sessionId === undefined ? 1 : `,"sessionId":"${sessionId}"}`.length;
  return bytes.subarray(from, bytes.length - behind);
}
