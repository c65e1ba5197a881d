import { maxLookahead, tidy } from "./plain-text.ts";

/*
 * Named elements hide members of forms and documents in every world (`<input name="closest">`). Members of page nodes
 * are therefore read through their prototypes.
 */

/** A point of the viewport, in CSS pixels. */
export interface ViewportPoint {
  readonly x: number;
  readonly y: number;
}

/** Elements that may contain another document. */
export const frameTags: ReadonlySet<string> = new Set(["iframe", "frame", "object", "embed", "fencedframe"]);

/** Getters by prototype and key. */
const getters = new Map<object, Map<PropertyKey, () => unknown>>();

/** Closed shadow roots that the worker has found and registered. */
const closedRoots = new WeakMap<Element, ShadowRoot>();

/** One step of a selector: `a > b` has two steps, the second with `>`. */
interface SelectorStep {
  readonly combinator: string;
  readonly compound: string;
}

/** Reads a member of a node through its prototype. A cached getter takes half the time of `Reflect.get`. */
export function read<Prototype extends object, Key extends keyof Prototype>(
  prototype: Prototype,
  key: Key,
  node: Prototype,
): Prototype[Key] {
  const known = getters.get(prototype);
  const get = known?.get(key) ?? Object.getOwnPropertyDescriptor(prototype, key)?.get;
  if (!get) return Reflect.get(prototype, key, node);
  if (known) known.set(key, get);
  else getters.set(prototype, new Map([[key, get]]));
  return get.call(node) as Prototype[Key];
}

/** Returns the title of the document, cut to the 2,000 characters of a response plus the lookahead. */
export function title(): string {
  return read(Document.prototype, "title", document).slice(0, 2_000 + maxLookahead);
}

/** Returns the parent element of a node, across shadow root boundaries. */
export function parentOf(node: Node): Element | undefined {
  const parent = read(Node.prototype, "parentNode", node);
  if (parent instanceof ShadowRoot) return parent.host;
  return parent instanceof Element ? parent : undefined;
}

/** Returns the slot to which an element is assigned, else the element's parent. */
export function shownIn(element: Element): Element | undefined {
  return read(Element.prototype, "assignedSlot", element) ?? parentOf(element);
}

/** Returns the open shadow root of an element, or its registered closed shadow root. */
export function shadowOf(element: Element): ShadowRoot | undefined {
  return read(Element.prototype, "shadowRoot", element) ?? closedRoots.get(element);
}

/** Registers a closed shadow root, which later snapshots include. */
export function keepClosed(host: Element, root: ShadowRoot): void {
  closedRoots.set(host, root);
}

/** Returns all matches in a root, in document order. Throws if the selector is invalid. */
export function queryAll(root: Document | DocumentFragment, selector: string): NodeListOf<Element> {
  const { querySelectorAll } = root instanceof Document ? Document.prototype : DocumentFragment.prototype;
  return querySelectorAll.call(root, selector);
}

/** Returns the open shadow roots of the document, outer ones first. */
export function* shadowRoots(): Generator<ShadowRoot> {
  const pending: (Document | ShadowRoot)[] = [document];
  for (let root = pending.pop(); root; root = pending.pop()) {
    if (root instanceof ShadowRoot) yield root;
    const inner: ShadowRoot[] = [];
    for (const element of queryAll(root, "*")) {
      const shadow = read(Element.prototype, "shadowRoot", element);
      if (shadow) inner.push(shadow);
    }
    for (let shadow = inner.pop(); shadow; shadow = inner.pop()) pending.push(shadow);
  }
}

/**
 * Returns all matches: first matches in the document, then matches in shadow roots. `a b` also matches across shadow
 * boundaries.
 */
export function* allMatches(selector: string): Generator<Element> {
  yield* queryAll(document, selector);
  let alternatives: SelectorStep[][] | undefined;
  for (const root of shadowRoots()) {
    alternatives ??= splitSelector(selector);
    const last = alternatives.map((steps) => steps.at(-1)?.compound).join(",");
    for (const element of queryAll(root, last)) {
      if (alternatives.some((steps) => matchesSteps(element, steps, steps.length - 1))) yield element;
    }
  }
}

/** Returns the first visible match, else the first match. */
export function findFirst(selector: string): Element | undefined {
  let first: Element | undefined;
  for (const element of allMatches(selector)) {
    if (isVisible(element)) return element;
    first ??= element;
  }
  return first;
}

/** Splits a valid selector at its commas and combinators. */
function splitSelector(selector: string): SelectorStep[][] {
  const tokens = /\\[\s\S]|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|\/\*[\s\S]*?\*\/|[\s\S]/g;
  const alternatives: SelectorStep[][] = [];
  let steps: SelectorStep[] = [];
  let combinator = "";
  let compound = "";
  let depth = 0;
  const endStep = () => {
    if (compound !== "") steps.push({ combinator: combinator || " ", compound });
    if (compound !== "") combinator = "";
    compound = "";
  };
  for (const [token] of selector.matchAll(tokens)) {
    if (token.startsWith("/*")) continue;
    if (token === "(" || token === "[") depth += 1;
    if (token === ")" || token === "]") depth -= 1;
    const isOutside = depth === 0 && token.length === 1;
    if (isOutside && /[\s>+~,]/.test(token)) endStep();
    else compound += token;
    if (isOutside && /[>+~]/.test(token)) combinator = token;
    if (isOutside && token === ",") {
      alternatives.push(steps);
      steps = [];
    }
  }
  endStep();
  return [...alternatives, steps];
}

/** Whether an element matches the steps up to index `at`. */
function matchesSteps(element: Element, steps: readonly SelectorStep[], at: number): boolean {
  const step = steps[at];
  if (!step || !Element.prototype.matches.call(element, step.compound)) return false;
  if (at === 0) return true;
  const isSibling = step.combinator === "+" || step.combinator === "~";
  const before = (node: Element) =>
    isSibling ? read(Element.prototype, "previousElementSibling", node) : parentOf(node);
  for (let other = before(element); other; other = before(other)) {
    if (matchesSteps(other, steps, at - 1)) return true;
    if (step.combinator === "+" || step.combinator === ">") return false;
  }
  return false;
}

/**
 * Whether an element has an area and is not hidden. Transparent elements count as visible. An element with
 * `display: contents` is visible if one of its children is.
 */
export function isVisible(element: Element): boolean {
  if (Element.prototype.checkVisibility.call(element, { visibilityProperty: true })) {
    const { width, height } = boxOf(element);
    return width > 0 && height > 0;
  }
  if (getComputedStyle(element).display !== "contents") return false;
  for (const child of read(Node.prototype, "childNodes", element)) {
    if (child instanceof Element ? isVisible(child) : child instanceof Text && boxesOf(child).length > 0) return true;
  }
  return false;
}

/** Results of all memoized functions, while `withMemo` runs. */
const memos: Map<Element, unknown>[] = [];
let isMemoizing = false;

/**
 * Runs synchronous work that does not change the document. Meanwhile, memoized functions compute one result per
 * element.
 */
export function withMemo<Value>(work: () => Value): Value {
  isMemoizing = true;
  try {
    return work();
  } finally {
    isMemoizing = false;
    for (const memo of memos) memo.clear();
  }
}

/** Returns a function that memoizes its results, except undefined, while `withMemo` runs. */
export function memoize<Value>(compute: (element: Element) => Value): (element: Element) => Value {
  const memo = new Map<Element, Value>();
  memos.push(memo);
  return (element) => {
    if (!isMemoizing) return compute(element);
    const known = memo.get(element);
    if (known !== undefined) return known;
    const result = compute(element);
    memo.set(element, result);
    return result;
  };
}

/** Returns the bounding box of an element. Memoized, because reading a box takes 4 us. */
export const boxOf = memoize((element): DOMRect => Element.prototype.getBoundingClientRect.call(element));

export function isSameBox(one: DOMRect, other: DOMRect): boolean {
  return one.x === other.x && one.y === other.y && one.width === other.width && one.height === other.height;
}

/** Returns the non-empty boxes of a node, such as one per line of a link. */
export function boxesOf(node: Node): DOMRect[] {
  let boxes = node instanceof Element ? [...Element.prototype.getClientRects.call(node)] : [];
  if (boxes.length === 0) {
    const range = new Range();
    range.selectNodeContents(node);
    boxes = [...range.getClientRects()];
  }
  return boxes.filter(({ width, height }) => width * height > 0);
}

/** Whether the control of an element, or else the element, is disabled. `aria-disabled` on an ancestor counts. */
export const isDisabled = memoize((element) => {
  const control = controlOf(element) ?? element;
  if (Element.prototype.matches.call(control, ":disabled")) return true;
  for (let at: Element | undefined = control; at; at = parentOf(at)) {
    if (Element.prototype.getAttribute.call(at, "aria-disabled") === "true") return true;
  }
  return false;
});

/** Returns the control that an element belongs to: a field, an enclosing button or link, or its label's control. */
function controlOf(element: Element): Element | undefined {
  const own = closest(element, "button, input, select, textarea, option, a, [role=button], [role=link]");
  return own ?? labelled(element);
}

/** Returns the control of the enclosing label. */
export function labelled(element: Element): Element | undefined {
  const label = closest(element, "label");
  return (label instanceof HTMLLabelElement && label.control) || undefined;
}

export function closest(element: Element, selector: string): Element | undefined {
  return Element.prototype.closest.call(element, selector) ?? undefined;
}

/** Returns the start tag of an element with its identifying attributes. */
export function startTagOf(element: Element): string {
  const attributes = ["id", "class", "role", "name"].flatMap((name) => {
    const value = Element.prototype.getAttribute.call(element, name);
    return value ? [` ${name}="${tidy(value, 40)}"`] : [];
  });
  return `<${read(Element.prototype, "localName", element)}${attributes.join("")}>`;
}

/** Returns the element at a point, searching known shadow roots. Undefined outside of the viewport. */
export function hitAt({ x, y }: ViewportPoint): Element | undefined {
  let hit = Document.prototype.elementFromPoint.call(document, x, y);
  for (let shadow = hit && shadowOf(hit); hit && shadow; shadow = shadowOf(hit)) {
    // At a slotted text, the hit is the host, which is outside of its own shadow root. The topmost element inside of
    // the root is used instead.
    const root = shadow;
    const inner = root.elementsFromPoint(x, y).find((element) => element.getRootNode() === root);
    if (!inner) break;
    hit = inner;
  }
  return hit ?? undefined;
}
