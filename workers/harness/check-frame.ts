import type { Frame } from "playwright-core";
import type { CheckFrame } from "./vendors.ts";

/** How long a field may take to tell its value. */
const fieldMs = 500;

/** A document has one field for each widget; more are not looked at. */
const maxFields = 5;

/**
 * Says whether a check's frame is before the person's eyes and still to be passed. Playwright looks at it from its
 * world of its own, which pages cannot see; it also finds frames in closed shadow roots, where Turnstile has its own.
 */
export async function isUnsolved(frame: Frame, check: CheckFrame): Promise<boolean> {
  if (!(await isShown(frame, check.minWidth, check.minHeight))) return false;
  for (let parent = frame.parentFrame(); parent?.parentFrame(); parent = parent.parentFrame()) {
    if (!(await isShown(parent, check.minWidth, check.minHeight))) return false;
  }
  const parent = frame.parentFrame();
  return check.answer === undefined || parent === null || !(await isAnswered(parent, check.answer));
}

async function isShown(frame: Frame, minWidth: number, minHeight: number): Promise<boolean> {
  const element = await frame.frameElement();
  try {
    const [box, isVisible] = await Promise.all([element.boundingBox(), element.isVisible()]);
    // What lies left of the page cannot be scrolled to.
    return isVisible && box !== null && box.width >= minWidth && box.height >= minHeight && box.x + box.width > 0;
  } finally {
    element.dispose().catch(() => undefined);
  }
}

async function isAnswered(parent: Frame, answer: string): Promise<boolean> {
  const fields = parent.locator(`css=${answer}`);
  const count = Math.min(await fields.count(), maxFields);
  for (let index = 0; index < count; index += 1) {
    if ((await fields.nth(index).inputValue({ timeout: fieldMs })) !== "") return true;
  }
  return false;
}
