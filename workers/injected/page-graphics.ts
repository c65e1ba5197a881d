import * as roles from "./page-role.ts";
import type { ViewportPoint } from "./page-visibility.ts";
import * as visibility from "./page-visibility.ts";
import { quote, tidy } from "./plain-text.ts";

/* Descriptions of canvases and charts. Their contents are not text. */

/** Minimum size of a chart in pixels, and its minimum number of shapes. Smaller drawings are icons or decorations. */
const smallest = { width: 120, height: 60, shapes: 6 };

/** Returns `canvas` or `chart`. Empty for everything else. */
export function graphicRoleOf(element: Element, { width, height }: DOMRect): string {
  const tag = roles.tagOf(element);
  if (tag === "canvas") return width >= 16 && height >= 16 ? "canvas" : "";
  if (tag !== "svg" || width < smallest.width || height < smallest.height) return "";
  const shapes = Element.prototype.querySelectorAll.call(element, "rect, path, circle, line, polyline, polygon");
  return shapes.length >= smallest.shapes ? "chart" : "";
}

/** Describes a canvas or a chart. Returns an empty string for other roles. */
export function describeGraphic(element: Element, role: string): string {
  if (role !== "canvas" && role !== "chart") return "";
  const title = Element.prototype.querySelector.call(element, "title");
  const titled = title ? (visibility.read(Node.prototype, "textContent", title) ?? "") : "";
  const label = roles.attribute(element, "aria-label", 400) || roles.attribute(element, "title", 400) || titled;
  const name = tidy(label, 160) || roles.contentOf(element, 160);
  return name === "" ? role : `${role} ${quote(name, 160)}`;
}

/** Returns the box of an element in the page's viewport as a state word. */
export function boxState({ x, y, width, height }: DOMRect, origin: ViewportPoint): string {
  return ` box=${[origin.x + x, origin.y + y, width, height].map(Math.round).join()}`;
}
