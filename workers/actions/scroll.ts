import type { Scroll } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { limits, type Scene } from "./scene.ts";
import { locateVisible } from "./selectors.ts";

/** How long a turn of the wheel may take to show; a page that has nothing to scroll shows nothing. */
const settleTime = 500;

/** Scrolls an element, or by the wheel whatever is in the middle of the viewport. Answers when it has been applied. */
export async function scroll(scene: Scene, { selector, frame, dx, dy }: Scroll): Promise<void> {
  const { page, progress, viewport } = scene;
  if (selector !== undefined) {
    const element = locateVisible(page, { selector, frame, path: "action" });
    await element.evaluate(scrollElement, { dx, dy }, limits(scene));
    return;
  }
  await progress.race(page.mouse.move(viewport.width / 2, viewport.height / 2));
  const before = await progress.race(page.evaluate(readOffsets));
  await progress.race(page.mouse.wheel(dx, dy));
  await progress.race(page.evaluate(settleOffsets, { before, settleMs: settleTime }));
}

/** Runs in the page. */
function scrollElement(element: Element, { dx, dy }: { dx: number; dy: number }): void {
  element.scrollBy({ left: dx, top: dy, behavior: "instant" });
}

/** Runs in the page: how far everything around the middle of the viewport is scrolled. */
function readOffsets(): string {
  let offsets = "";
  let element = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  for (; element; element = element.parentElement) offsets += `${element.scrollLeft},${element.scrollTop};`;
  return `${offsets}${scrollX},${scrollY}`;
}

/** Runs in the page: resolves when the offsets have changed and then stood still for two frames, or time is up. */
function settleOffsets({ before, settleMs }: { before: string; settleMs: number }): Promise<void> {
  const read = () => {
    let offsets = "";
    let element = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    for (; element; element = element.parentElement) offsets += `${element.scrollLeft},${element.scrollTop};`;
    return `${offsets}${scrollX},${scrollY}`;
  };
  return new Promise((resolve) => {
    const endsAt = performance.now() + settleMs;
    let last = before;
    let still = 0;
    const look = () => {
      const now = read();
      still = now === last ? still + 1 : 0;
      last = now;
      if ((now !== before && still >= 2) || performance.now() > endsAt) resolve();
      else requestAnimationFrame(look);
    };
    look();
  });
}
