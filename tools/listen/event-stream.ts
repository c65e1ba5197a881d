/** A Server-Sent Event, limited to what the service writes. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: string;
}

/** Parses Server-Sent Events (HTML Living Standard, section 9.2) with one data line. Calls `received` for each chunk. */
export async function* readEventStream(
  body: AsyncIterable<Uint8Array>,
  received: () => void,
): AsyncGenerator<StreamEvent, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    received();
    const frames = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const fields = new Map(frame.split("\n").map((line) => [line.split(": ", 1)[0], line.replace(/^[^:]*: /, "")]));
      const data = fields.get("data");
      if (data !== undefined) yield { id: fields.get("id"), type: fields.get("event") ?? "message", data };
    }
  }
}
