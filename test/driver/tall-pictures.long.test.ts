import { afterAll, beforeAll, expect, test } from "vitest";
import { CaptureKind } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { readPng } from "../support/png.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

/** Largest height of a picture by width, which depends on the number of compositor tiles in a row. */
const tallest = [
  { width: 250, factor: 1, height: 457_200 },
  { width: 640, factor: 2, height: 76_200 },
];

test.each(["headless-shell", "chromium"].flatMap((runtime) => tallest.map((picture) => ({ runtime, ...picture }))))(
  "$runtime renders a page $width wide up to $height pixels, and no taller one",
  async (picture) => {
    const { runtime, width, factor, height } = picture;
    const session = await worker.open({ runtime, viewport: { width, height: 400, deviceScaleFactor: factor } });
    await session.navigate({ url: site.url(`/tall?pixels=${height / factor}`) });
    const { data } = await session.capture({ kind: CaptureKind.SCREENSHOT, fullPage: true });
    const { rgb, ...size } = readPng(data);
    expect(size).toEqual({ width: width * factor, height });
    expect([...rgb.subarray(-3)]).toEqual([0, 0x99, 0]);
    await session.navigate({ url: site.url(`/tall?pixels=${height / factor + 1}`) });
    await expect(session.capture({ kind: CaptureKind.SCREENSHOT, fullPage: true })).rejects.toMatchObject({
      slug: "validation-failed",
      detail: `full_page: a picture ${width * factor} pixels wide can be at most ${height} tall, and this one would be ${width * factor}x${height + factor}`,
    });
    await session.destroy();
  },
);
