import { elementOf, type Ref } from "./page-refs.ts";
import * as visibility from "./page-visibility.ts";

/* Numbered boxes around elements while a picture is taken. */

const maxMarks = 500;

/** Milliseconds after which marks disappear if the worker does not remove them. */
const longestMs = 10_000;

/** The numbers are generated content, which is not part of any text. */
const style = `
  :host { all: initial !important; position: fixed !important; inset: 0 !important; pointer-events: none !important; }
  i { position: fixed; box-sizing: border-box; border: 2px solid #d6006c; }
  i::after {
    content: attr(data-mark); position: absolute; top: -2px; left: -2px; padding: 0 2px;
    font: bold 11px/13px monospace; color: #fff; background: #d6006c;
  }
`;

let remove = () => {};

/** Replaces the marks of this document by marks of the given elements. Elements of other documents are left out. */
export function drawMarks(refs: readonly Ref[], isMain: boolean): void {
  remove();
  const boxes = refs.slice(0, maxMarks).flatMap((ref) => {
    const element = elementOf(ref);
    return element ? [{ mark: isMain ? `${ref.number}` : `s${ref.epoch}e${ref.number}`, ...boxOf(element) }] : [];
  });
  if (boxes.length === 0) return;
  const host = document.createElement("div");
  const root = Element.prototype.attachShadow.call(host, { mode: "closed" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  root.adoptedStyleSheets = [sheet];
  for (const { mark, left, top, width, height } of boxes) {
    const box = document.createElement("i");
    box.setAttribute("data-mark", mark);
    Object.assign(box.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    root.append(box);
  }
  host.popover = "manual";
  document.documentElement.append(host);
  // The top layer is above dialogs.
  HTMLElement.prototype.showPopover.call(host);
  const timer = setTimeout(() => remove(), longestMs);
  remove = () => {
    clearTimeout(timer);
    Element.prototype.remove.call(host);
    remove = () => {};
  };
}

function boxOf(element: Element) {
  const { left, top, width, height } = visibility.boxOf(element);
  return { left, top, width, height };
}
