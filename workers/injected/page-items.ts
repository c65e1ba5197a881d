import * as visibility from "./page-visibility.ts";

/* Finds elements that are interactive although their own markup does not indicate this. */

/** Elements with listeners for clicks or presses that `registerListening` has registered. */
const listening = new WeakSet<Element>();

const natives =
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [onclick], [draggable=true], [contenteditable=true], " +
  "[role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=menuitem], [role=option], [role=tab], " +
  "[role=slider], [tabindex]:not([tabindex^='-'])";

/** Interactive parts of an element. */
export interface Inside {
  /** Whether a descendant has interactive markup, a listener, or a pointer cursor that the element lacks. */
  readonly hasActive: boolean;
  /** Repeated parts and icons that are probably interactive, although neither markup nor cursor indicates this. */
  readonly items: ReadonlySet<Element>;
}

const nothing: ReadonlySet<Element> = new Set();

/** Value for an element that is interactive as a whole, or not at all. */
export const empty: Inside = { hasActive: false, items: nothing };

/** Returns the root of the nodes that the worker queries for listeners. */
export function listenersRoot(): Document {
  return document;
}

/** Registers elements that have listeners for presses. */
export function registerListening(...nodes: unknown[]): void {
  for (const node of nodes) if (node instanceof Element) listening.add(node);
}

export function listens(element: Element): boolean {
  return listening.has(element);
}

/** Returns the interactive parts of an element. `isPointer` is whether the element has a pointer cursor. */
export function partsOf(element: Element, isPointer: boolean): Inside {
  const isMarked = Element.prototype.querySelector.call(element, natives) !== null;
  let hasActive = isMarked;
  const inner = Element.prototype.getElementsByTagName.call(element, "*");
  for (let index = 0; index < Math.min(inner.length, 120) && !hasActive; index += 1) {
    const each = inner[index];
    if (each) hasActive = listening.has(each) || (!isPointer && getComputedStyle(each).cursor === "pointer");
  }
  const icons = isPointer ? iconsIn(element) : nothing;
  if (isPointer && isRepeated(element)) return { hasActive, items: icons };
  const items = hasActive ? nothing : repeatedIn(element);
  return { hasActive, items: items.size > 0 ? items : icons };
}

/**
 * Follows single children, at most four levels deep, to an element with several children. Returns these children if
 * they are similar.
 */
function repeatedIn(element: Element): ReadonlySet<Element> {
  let children = shownChildren(element);
  for (let depth = 0; depth < 4 && children.length === 1; depth += 1) children = children.flatMap(shownChildren);
  const [first] = children;
  if (children.length < 2 || !first || children.length > 2_000) return nothing;
  const kind = kindOf(first);
  const isLoose = /^(?:p|h[1-6]|br|img|svg|option|thead|tbody|tfoot|td|th)$/.test(tagOf(first));
  if (isLoose || children.some((child) => kindOf(child) !== kind)) return nothing;
  return new Set(children);
}

/** Whether an element is one of several similar siblings, as a card of a list is. */
function isRepeated(element: Element): boolean {
  const kind = kindOf(element);
  const before = visibility.read(Element.prototype, "previousElementSibling", element);
  const after = visibility.read(Element.prototype, "nextElementSibling", element);
  return [before, after].some((sibling) => sibling !== null && kindOf(sibling) === kind);
}

/** Returns icons that are small compared with the element and have a class or id that suggests their own action. */
function iconsIn(element: Element): ReadonlySet<Element> {
  const icons = Element.prototype.querySelectorAll.call(element, "svg, i, img");
  if (icons.length === 0 || icons.length > 8) return nothing;
  const whole = visibility.boxOf(element);
  const found = new Set<Element>();
  for (const icon of icons) {
    let outer: Element = icon;
    for (let up = visibility.parentOf(icon); up && up !== element && isBlank(up); up = visibility.parentOf(up))
      outer = up;
    const { width, height } = visibility.boxOf(outer);
    const isSmall = width > 0 && width <= 40 && height <= 40;
    const isAction = /icon|btn|button|action|star|heart|fav|close|remove|delete|trash|more|menu|edit|pin|share/i;
    const written = [outer, icon].map((each) => `${attributeOf(each, "class")} ${attributeOf(each, "id")}`).join(" ");
    if (isSmall && 16 * width * height <= whole.width * whole.height && isAction.test(written)) found.add(outer);
  }
  return found;
}

/** Whether the attributes of the page, or of a common library, mark an element as draggable or sortable. */
export function isDraggable(element: Element): boolean {
  if (!Element.prototype.hasAttributes.call(element)) return false;
  if (attributeOf(element, "draggable") === "true") return true;
  const names = [
    "data-rbd-drag-handle-draggable-id",
    "data-rfd-drag-handle-draggable-id",
    "data-dnd-handle",
    "aria-grabbed",
  ];
  if (names.some((name) => Element.prototype.hasAttribute.call(element, name))) return true;
  if (/draggable|sortable/i.test(attributeOf(element, "aria-roledescription"))) return true;
  return /(?:^|[\s_])(?:ui-draggable|ui-sortable-handle|cdk-drag|react-draggable|gu-draggable|sortable-(?:item|handle)|drag-?handle|draggable(?:-item)?|dnd-(?:item|handle))(?=$|[\s_])/i.test(
    attributeOf(element, "class"),
  );
}

/** Returns a key that is equal for similar elements: tag, role and first class. */
function kindOf(element: Element): string {
  const [first = ""] = attributeOf(element, "class").trim().split(/\s/);
  return `${tagOf(element)} ${attributeOf(element, "role")} ${first}`;
}

function shownChildren(element: Element): Element[] {
  const children = visibility.read(Element.prototype, "children", element);
  return [...children].slice(0, 2_001).filter((child) => Element.prototype.checkVisibility.call(child));
}

function isBlank(element: Element): boolean {
  return !/\S/.test(visibility.read(Node.prototype, "textContent", element) ?? "");
}

function tagOf(element: Element): string {
  return visibility.read(Element.prototype, "localName", element);
}

function attributeOf(element: Element, name: string): string {
  return (Element.prototype.getAttribute.call(element, name) ?? "").slice(0, 200);
}
