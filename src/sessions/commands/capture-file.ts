import { create } from "@bufbuild/protobuf";
import {
  type CaptureHeader,
  type CaptureResponse,
  CaptureResponseSchema,
  type CaptureStreamResponse,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../platform/errors.ts";

/** Collects a streamed capture into one response. Calls `hold` with the capture's size before allocating the memory. */
export async function collectCapture(
  parts: AsyncIterable<CaptureStreamResponse>,
  hold: (bytes: number) => void = () => undefined,
): Promise<CaptureResponse> {
  let header: CaptureHeader | undefined;
  let file = new Uint8Array();
  let size = 0;
  for await (const part of parts) {
    if (part.header) {
      header = part.header;
      hold(Number(header.bytes));
      file = new Uint8Array(Number(header.bytes));
    }
    if (size + part.data.length > file.length)
      throw fail("internal", {}, { detail: "the capture is longer than announced" });
    file.set(part.data, size);
    size += part.data.length;
  }
  if (!header || size !== file.length)
    throw fail("driver-error", {}, { detail: "the capture is incomplete: try again" });
  const { $typeName: _typeName, $unknown: _unknown, ...fields } = header;
  return create(CaptureResponseSchema, { ...fields, data: file });
}
