import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { compileStreamedBody } from "../../gateway/rest/capture-body.ts";
import {
  CaptureKind,
  CaptureResponseSchema,
  type CaptureStreamResponse,
  CaptureStreamResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";

const streamBody = compileStreamedBody(CaptureResponseSchema, CaptureStreamResponseSchema);

async function* partsOf(bytes: number, chunks: readonly string[]): AsyncGenerator<CaptureStreamResponse> {
  const header = { kind: CaptureKind.PDF, contentType: "application/pdf", bytes: BigInt(bytes) };
  yield create(CaptureStreamResponseSchema, { header });
  for (const chunk of chunks) yield create(CaptureStreamResponseSchema, { data: Buffer.from(chunk) });
}

test.each([
  { chunks: ["all of a short one"], pieces: 1 },
  { chunks: ["thirds ", "do not", " end here"], pieces: 3 },
  { chunks: ["a", "b", "c", "d"], pieces: 3 },
  { chunks: ["", "nothing", ""], pieces: 1 },
  { chunks: [], pieces: 1 },
])("$chunks is sent in $pieces pieces", async ({ chunks, pieces }) => {
  const file = chunks.join("");
  const { contentLength, body } = await streamBody(partsOf(file.length, chunks));
  const sent: Buffer[] = await Array.fromAsync(body);
  const text = Buffer.concat(sent);
  expect(sent).toHaveLength(pieces);
  expect(text).toHaveLength(contentLength);
  expect(text.at(-1)).toBe(0x0a);
  expect(JSON.parse(text.toString())).toMatchObject({
    kind: "pdf",
    bytes: file.length,
    data: Buffer.from(file).toString("base64"),
  });
});

test.each([
  ["fewer", 9],
  ["more", 7],
])("a capture with %s bytes than announced fails", async (_name, said) => {
  const { body } = await streamBody(partsOf(said, ["four", "four"]));
  await expect(Array.fromAsync(body)).rejects.toThrow(/expected \d bytes of the capture, got 8/);
});
