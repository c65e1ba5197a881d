import type { Scroll } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { Seen } from "../elements/page-wait.ts";
import { callPage, mainFrame } from "../elements/page-world.ts";
import { persist, useElement } from "../elements/reach.ts";
import { inputOf } from "../input/page-input.ts";
import type { Scene } from "./scene.ts";

/** How long a turn of the wheel may take to show; a page that has nothing to scroll shows nothing. */
const settleMs = 500;

/** Scrolls an element, or by the wheel whatever is in the middle of the viewport. Answers when it has been applied. */
export async function scroll(scene: Scene, { selector, frame, dx, dy }: Scroll): Promise<void> {
  if (selector !== undefined) {
    await useElement(scene, { selector, frame, path: "action" }, { act: scrollElement, args: { dx, dy } });
    return;
  }
  const { progress, sessionPage } = scene;
  const { mouse } = inputOf(await progress.race(sessionPage.cdp));
  const { middle, offsets } = await persist(scene, async () => {
    return { value: await callPage(scene, await mainFrame(scene), "scrolled") };
  });
  await progress.race(Promise.all([mouse.move(middle), mouse.turnWheel(middle, { x: dx, y: dy })]));
  const timeoutMs = Math.min(settleMs, progress.remaining());
  await persist(scene, async () => {
    return { value: await callPage(scene, await mainFrame(scene), "settled", { before: offsets, timeoutMs }) };
  });
}

/** Runs in the page. */
function scrollElement(element: Element, { dx, dy }: { dx: number; dy: number }): Seen<null> {
  element.scrollBy({ left: dx, top: dy, behavior: "instant" });
  return { value: null };
}
