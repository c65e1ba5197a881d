import { hintOf } from "./page-hint.ts";
import * as items from "./page-items.ts";
import * as visibility from "./page-visibility.ts";
import { quote, tidy } from "./plain-text.ts";

/* Roles, names and states of elements. Page text in descriptions and states is always quoted, except in hints. */

/** Maximum characters of an element's value or text that can be read. */
const longestRead = 262_144;

/** Maximum characters of a name or of a text line. */
export const longestName = 400;

const words = (text: string) => text.split(" ");
const pairs = (text: string) => new Map(words(text).map((pair) => pair.split("=") as [string, string]));

/** Interactive roles (WAI-ARIA 1.3). */
const activeRoles: ReadonlySet<string> = new Set(
  words(
    "button link checkbox radio switch textbox searchbox combobox listbox option slider spinbutton tab menuitem " +
      "menuitemcheckbox menuitemradio treeitem",
  ),
);

/** Roles that group their contents. */
export const groupRoles: ReadonlySet<string> = new Set(
  words(
    "navigation complementary form dialog alertdialog alert status list listitem table grid row cell gridcell " +
      "columnheader rowheader tablist menu menubar tree group radiogroup toolbar region search article main",
  ),
);

/** Implicit roles of elements by tag (HTML AAM). */
const rolesByTag: ReadonlyMap<string, string> = pairs(
  "button=button summary=button textarea=textbox nav=navigation aside=complementary form=form dialog=dialog ul=list " +
    "ol=list li=listitem table=table tr=row td=cell th=columnheader fieldset=group h1=heading h2=heading h3=heading " +
    "h4=heading h5=heading h6=heading img=img svg=img main=main option=option",
);
/** Implicit roles of inputs by type. */
const rolesByType: ReadonlyMap<string, string> = pairs(
  "checkbox=checkbox radio=radio range=slider number=spinbutton search=searchbox button=button submit=button " +
    "reset=button image=button file=file color=color hidden=",
);

/** Returns an attribute, cut to `max` characters. */
export function attribute(element: Element, name: string, max = 64): string {
  return (Element.prototype.getAttribute.call(element, name) ?? "").slice(0, max);
}

export function tagOf(element: Element): string {
  return visibility.read(Element.prototype, "localName", element);
}

export function roleOf(element: Element): string {
  const stated = attribute(element, "role");
  const [given = ""] = stated === "" ? [] : (/\S+/.exec(stated.toLowerCase()) ?? []);
  if (activeRoles.has(given) || groupRoles.has(given) || given === "heading" || given === "img") return given;
  if (element instanceof HTMLInputElement) return rolesByType.get(element.type) ?? "textbox";
  if (element instanceof HTMLSelectElement) return element.multiple || element.size > 1 ? "listbox" : "combobox";
  const tag = tagOf(element);
  if (tag === "a" || tag === "area") return Element.prototype.hasAttribute.call(element, "href") ? "link" : "";
  if (isEditor(element)) return "textbox";
  return rolesByTag.get(tag) ?? "";
}

/** Whether an element is the root of an editable region. */
function isEditor(element: Element): boolean {
  if (!(element instanceof HTMLElement) || !visibility.read(HTMLElement.prototype, "isContentEditable", element))
    return false;
  const around = visibility.parentOf(element);
  return !(around instanceof HTMLElement && visibility.read(HTMLElement.prototype, "isContentEditable", around));
}

/** Whether an element is a cell of a grid. Unlike cells of a table, cells of a grid are interactive. */
export function isGridCell(element: Element, role: string): boolean {
  if (role === "gridcell") return true;
  return role === "cell" && visibility.closest(element, "[role=grid], [role=treegrid]") !== undefined;
}

/** Whether the markup makes an element interactive. */
export function isActive(element: Element, role: string): boolean {
  if (element instanceof HTMLInputElement) return element.type !== "hidden";
  const tag = tagOf(element);
  if (tag === "button" || tag === "select" || tag === "textarea" || isEditor(element)) return true;
  if (tag === "option") return false;
  if (tag === "summary") return visibility.parentOf(element) instanceof HTMLDetailsElement;
  if (activeRoles.has(role)) return true;
  if (!Element.prototype.hasAttributes.call(element)) return false;
  const has = (name: string) => Element.prototype.hasAttribute.call(element, name);
  if (["onclick", "onmousedown", "onpointerdown", "onmouseup", "ondblclick"].some(has)) return true;
  if ((tag === "audio" || tag === "video") && has("controls")) return true;
  return (
    attribute(element, "draggable") === "true" || (has("tabindex") && !attribute(element, "tabindex").startsWith("-"))
  );
}

/**
 * Whether an element is a control that is interactive as a whole, so that its contents are its name. Other elements may
 * contain parts that are interactive by themselves.
 */
function isSingle(element: Element, role: string): boolean {
  return activeRoles.has(role) || /^(?:button|input|select|textarea|summary|label)$/.test(tagOf(element));
}

/** Returns the interactive parts of an element. Empty if the element is a control itself. */
export function insideOf(element: Element, role = roleOf(element)): items.Inside {
  const isPointer = getComputedStyle(element).cursor === "pointer";
  return isSingle(element, role) ? items.empty : items.partsOf(element, isPointer);
}

/** Describes an element by role and name. If the name has no letters, a hint may follow. */
export function describe(element: Element, inside = insideOf(element)): string {
  return inside === items.empty ? describeSingle(element) : describeWith(element, inside);
}

const describeSingle = visibility.memoize((element) => describeWith(element, items.empty));

function describeWith(element: Element, inside: items.Inside): string {
  const subject = (element instanceof HTMLLabelElement && element.control) || element;
  const role = roleOf(subject);
  const isWhole = inside === items.empty || (!inside.hasActive && inside.items.size === 0);
  const name = isWhole ? nameOf(subject) || nameOf(element) : ownName(element, inside);
  const hint = /\p{L}/u.test(name) ? "" : hintOf(element, name !== "");
  const isSlider = role === "" && isHandle(element);
  return [role || (isSlider ? "slider" : "clickable"), name === "" ? "" : quote(name, longestName), hint]
    .filter(Boolean)
    .join(" ");
}

/** Returns the name of an element without the texts of its interactive parts. */
function ownName(element: Element, { items: parts }: items.Inside): string {
  const own = tidy(attribute(element, "aria-label", 400) || attribute(element, "title", 400), 160);
  return (
    own ||
    contentOf(element, longestName, (part) => parts.has(part) || items.listens(part) || isActive(part, roleOf(part)))
  );
}

/** Whether an element is the handle of a slider that has no role. */
function isHandle(element: Element): boolean {
  return (
    /(?:^|[\s_-])(?:thumb|knob|handle)(?=$|[\s_-])/i.test(attribute(element, "class", 200)) &&
    /slider|range|track/i.test(
      attribute(visibility.parentOf(element) ?? element, "class", 200) + attribute(element, "class", 200),
    )
  );
}

/** Returns the name of an element (similar to accname 1.2), at most 400 characters. */
function nameOf(element: Element): string {
  const ids = attribute(element, "aria-labelledby", 200).split(/\s+/).filter(Boolean).slice(0, 4);
  const root = Node.prototype.getRootNode.call(element);
  const named = root instanceof Document || root instanceof ShadowRoot ? root : document;
  const labels = ids.flatMap((id) => [...visibility.queryAll(named, `#${CSS.escape(id)}`)].slice(0, 1));
  if (labels.length > 0) return tidy(labels.map((label) => contentOf(label, 160)).join(" "), 160);
  const own = tidy(attribute(element, "aria-label", 400), 160);
  if (own !== "") return own;
  const field = fieldName(element);
  if (field !== "") return field;
  const label = ["alt", "placeholder", "title"].map((name) => tidy(attribute(element, name, 400), 160)).find(Boolean);
  const isField =
    element instanceof HTMLInputElement || /^(?:select|textarea)$/.test(tagOf(element)) || isEditor(element);
  return isField ? (label ?? "") : contentOf(element, longestName) || (label ?? "") || titleInside(element);
}

/** Returns the first title or label inside of an element, such as the `<title>` of an SVG. */
function titleInside(element: Element): string {
  const titled = Element.prototype.querySelector.call(element, "title, [title], [aria-label]");
  if (!titled) return "";
  const title = tagOf(titled) === "title" ? visibility.read(Node.prototype, "textContent", titled) : null;
  return tidy((title ?? attribute(titled, "title", 400)) || attribute(titled, "aria-label", 400), 160);
}

/** Returns the text of a field's labels, or the caption of an input button. */
function fieldName(element: Element): string {
  const isField =
    element instanceof HTMLInputElement ||
    element instanceof HTMLSelectElement ||
    element instanceof HTMLTextAreaElement;
  const labels = isField ? [...(element.labels ?? [])].slice(0, 2) : [];
  const name = tidy(labels.map((label) => contentOf(label, 160)).join(" "), 160);
  if (name !== "" || !(element instanceof HTMLInputElement)) return name;
  const standard: Record<string, string> = { submit: "Submit", reset: "Reset", button: "", image: "" };
  return element.type in standard ? tidy(element.value, 160) || (standard[element.type] ?? "") : "";
}

/** Tags of elements with text that is not part of the text of their ancestors. */
const unreadTags = /^(?:head|script|noscript|style|template|input|select|textarea)$/;

/**
 * Returns the text inside a node, cut to `max` characters, without the parts that `isLeftOut` selects. Visits at most
 * `left` nodes.
 */
export function contentOf(root: Node, max: number, isLeftOut?: (part: Element) => boolean, left = 256): string {
  let words = "";
  const pending: Node[] = [root];
  for (let node = pending.pop(); node && left > 0 && words.length < 2 * max; node = pending.pop()) {
    left -= 1;
    if (node instanceof Text) words += visibility.read(CharacterData.prototype, "data", node).slice(0, 4 * max);
    if (!(node instanceof Element)) continue;
    if (node !== root && (unreadTags.test(tagOf(node)) || !isRendered(node) || isLeftOut?.(node))) continue;
    const label = node === root ? "" : attribute(node, "aria-label", 2 * max) || attribute(node, "alt", 2 * max);
    words += label === "" ? " " : ` ${label} `;
    if (label !== "") continue;
    const inner: Node[] = [];
    const children = childrenOf(node);
    for (let index = 0; index < children.length && inner.length < left; index += 1) {
      const child = children[index];
      if (child) inner.push(child);
    }
    for (let child = inner.pop(); child; child = inner.pop()) pending.push(child);
  }
  return tidy(words, max);
}

/** Whether an element or its contents are rendered. */
export function isRendered(element: Element): boolean {
  return Element.prototype.checkVisibility.call(element) || getComputedStyle(element).display === "contents";
}

/**
 * Returns the children that an element renders: the children of its shadow root, the nodes assigned to a slot, or its
 * own children.
 */
export function childrenOf(element: Element): ArrayLike<Node> {
  const shadow = visibility.shadowOf(element);
  if (shadow) return visibility.read(Node.prototype, "childNodes", shadow);
  const slotted = element instanceof HTMLSlotElement ? element.assignedNodes() : [];
  return slotted.length > 0 ? slotted : visibility.read(Node.prototype, "childNodes", element);
}

/** Returns the state words that follow an element's name. */
export function stateOf(element: Element): string {
  const subject = (element instanceof HTMLLabelElement && element.control) || element;
  const state = [...fieldState(subject), ...rangeOf(subject), ...flagsOf(subject)];
  return state.map((word) => ` ${word}`).join("");
}

/** Returns state words for the value of a field. For a password, only whether the field is filled. */
function fieldState(element: Element): string[] {
  if (element instanceof HTMLTextAreaElement) return valued(element.value);
  if (element instanceof HTMLSelectElement) {
    const chosen = [...element.selectedOptions].slice(0, 5).map((option) => option.label);
    const others = [...element.options].slice(0, 20).map((option) => quote(option.label, 40));
    const more = element.options.length > 20 ? [`and ${element.options.length - 20} more`] : [];
    return [...valued(chosen.join(", ")), `options=[${others.join(",")}]`, ...more];
  }
  if (isEditor(element)) return valued(readContent(element));
  if (!(element instanceof HTMLInputElement)) return [];
  const { type, value, files } = element;
  if (/^(?:checkbox|radio|submit|reset|button|image|hidden)$/.test(type)) return [];
  if (type === "file") return [...(files ?? [])].slice(0, 5).map(({ name }) => `file=${quote(name, 100)}`);
  if (type === "password") return ["type=password", ...(value === "" ? [] : ["filled"])];
  const plain = /^(?:text|search|number|range|color)$/.test(type);
  return [...(plain ? [] : [`type=${type}`]), ...valued(value)];
}

/** Returns state words for a value, and for the number of characters that are left out. Empty for an empty value. */
function valued(value: string): string[] {
  const text = tidy(value, longestRead);
  if (text === "") return [];
  return [`value=${quote(text, 200)}`, ...(text.length > 200 ? [`(+${text.length - 200} characters)`] : [])];
}

/** Returns the value of a field, or the text of an element, on one line. Empty for a password field. */
export function readContent(element: Element): string {
  if (element instanceof HTMLInputElement) return element.type === "password" ? "" : tidy(element.value, longestRead);
  if (element instanceof HTMLTextAreaElement) return tidy(element.value, longestRead);
  return contentOf(element, longestRead, undefined, 20_000);
}

/** Returns state words for value and bounds of a slider, number input, scroll bar or meter. */
function rangeOf(element: Element): string[] {
  const words = (bounds: Record<string, string>) =>
    Object.entries(bounds).flatMap(([name, text]) => (/^-?[\d.]{1,12}$/.test(text) ? [`${name}=${text}`] : []));
  if (element instanceof HTMLInputElement) {
    const { type, min, max, step } = element;
    if (type === "range") return words({ min: min || "0", max: max || "100", step });
    return type === "number" ? words({ min, max, step }) : [];
  }
  const now = attribute(element, "aria-valuenow", 20);
  if (now !== "") {
    const text = attribute(element, "aria-valuetext", 400) || now;
    const [min, max] = [attribute(element, "aria-valuemin", 20), attribute(element, "aria-valuemax", 20)];
    return [`value=${quote(text, 200)}`, ...words({ min, max })];
  }
  const track = isHandle(element) ? visibility.parentOf(element) : undefined;
  if (!track || roleOf(element) === "slider") return [];
  const [box, around] = [visibility.boxOf(element), visibility.boxOf(track)];
  const isAcross = around.width >= around.height;
  const at = isAcross
    ? (box.left + box.width / 2 - around.left) / around.width
    : (around.bottom - box.top - box.height / 2) / around.height;
  return [`value="${Math.round(100 * Math.min(1, Math.max(0, at)))}%"`, "min=0", "max=100"];
}

/** Returns the current states of an element as fixed words, such as `checked`. */
function flagsOf(element: Element): string[] {
  const words: string[] = [];
  if (element instanceof HTMLInputElement && /^(?:checkbox|radio)$/.test(element.type))
    words.push(...(element.indeterminate ? ["mixed"] : element.checked ? ["checked"] : []));
  else if (/^(?:true|false|mixed)$/.test(attribute(element, "aria-checked"))) {
    const checked = attribute(element, "aria-checked");
    if (checked !== "false") words.push(checked === "mixed" ? "mixed" : "checked");
  }
  if (attribute(element, "aria-pressed") === "true") words.push("pressed");
  if (attribute(element, "aria-selected") === "true") words.push("selected");
  const details = tagOf(element) === "summary" ? visibility.parentOf(element) : undefined;
  const expanded = details instanceof HTMLDetailsElement ? String(details.open) : attribute(element, "aria-expanded");
  if (expanded === "true") words.push("expanded");
  if (expanded === "false") words.push("collapsed");
  const level = /^h[1-6]$/.test(tagOf(element)) ? tagOf(element).slice(1) : attribute(element, "aria-level", 1);
  if (/^[1-9]$/.test(level)) words.push(`level=${level}`);
  if (visibility.isDisabled(element)) words.push("disabled");
  const is = (selector: string) => Element.prototype.matches.call(element, selector);
  if (is(":required")) words.push("required");
  if (is("input:read-only, textarea:read-only") && "readOnly" in element && element.readOnly) words.push("readonly");
  if (is(":user-invalid") || attribute(element, "aria-invalid") === "true") words.push("invalid");
  if (is(":focus") && !is("body")) words.push("focused");
  return words;
}
