import { EventEmitter } from "node:events";
import { expect, test, vi } from "vitest";
import type { LiveFrame } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { Screencast } from "../../workers/live/screencast.ts";
import type { PageRegistry } from "../../workers/pages/page-registry.ts";

/** The start of a JPEG, which contains its size. */
function picture(width: number, height: number): string {
  const bytes = Buffer.alloc(32);
  bytes.set([0xff, 0xd8, 0xff, 0xc0, 0, 17, 8]);
  bytes.writeUInt16BE(height, 7);
  bytes.writeUInt16BE(width, 9);
  return bytes.toString("base64");
}

test("the screencast restarts for a limited time while a new page's pictures have another size", async () => {
  vi.useFakeTimers();
  const sent: string[] = [];
  const session = Object.assign(new EventEmitter(), { send: async (method: string) => void sent.push(method) });
  const shown: LiveFrame[] = [];
  const pages = { shown: { id: "page_1", isCrashed: false, tab: { session } } } as unknown as PageRegistry;
  const screencast = new Screencast(pages, { onFrame: (frame) => void shown.push(frame), wantsFrame: () => true });
  screencast.setEnabled(true);
  const begin = ["Page.bringToFront", "Page.startScreencast"];
  expect(sent.splice(0)).toEqual(begin);
  const metadata = { deviceWidth: 1280, deviceHeight: 720 };
  const come = (data: string) => session.emit("Page.screencastFrame", { data, metadata, sessionId: 1 });
  for (let tries = 0; tries < 3; tries += 1) {
    // The second picture has the page's aspect ratio.
    come(picture(960, 720));
    come(picture(1_125, 633));
    vi.advanceTimersByTime(1_000);
    expect([shown.length, sent.splice(0)]).toEqual([0, ["Page.stopScreencast", ...begin]]);
  }
  // Pictures are shown though their size still differs.
  come(picture(960, 720));
  come(picture(1_125, 633));
  come(picture(1_280, 720));
  expect(shown.length).toBe(3);
  // The screencast restarts again after a new difference.
  come(picture(960, 720));
  expect(shown.length).toBe(3);
  come(picture(1_280, 719));
  Object.assign(metadata, { deviceWidth: 3_000, deviceHeight: 1_000 });
  come(picture(1_600, 533));
  expect(shown.map(({ width }) => width)).toEqual([1_280, 1_280, 1_280, 1_280, 3_000]);
  screencast.setEnabled(false);
  vi.useRealTimers();
});
