import { isSilent } from "./page-text.ts";
import * as visibility from "./page-visibility.ts";
import { quote, tidy } from "./plain-text.ts";

/* Page text in the results is always quoted. */

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
  const given = attribute(element, "role").trim().toLowerCase().split(/\s/, 1)[0] ?? "";
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

/** Whether the markup makes an element interactive. */
export function isActive(element: Element, role: string): boolean {
  if (element instanceof HTMLInputElement) return element.type !== "hidden";
  const tag = tagOf(element);
  if (tag === "button" || tag === "select" || tag === "textarea" || isEditor(element)) return true;
  if (tag === "option") return false;
  if (tag === "summary") return visibility.parentOf(element) instanceof HTMLDetailsElement;
  if (activeRoles.has(role)) return true;
  const has = (name: string) => Element.prototype.hasAttribute.call(element, name);
  if (["onclick", "onmousedown", "onpointerdown", "onmouseup", "ondblclick"].some(has)) return true;
  if ((tag === "audio" || tag === "video") && has("controls")) return true;
  return (
    attribute(element, "draggable") === "true" || (has("tabindex") && !attribute(element, "tabindex").startsWith("-"))
  );
}

/** Describes an element by role and name. */
export function describe(element: Element): string {
  const subject = (element instanceof HTMLLabelElement && element.control) || element;
  const name = nameOf(subject) || nameOf(element);
  return `${roleOf(subject) || "clickable"}${name === "" ? "" : ` ${quote(name, 160)}`}`;
}

/** Returns the visible name of an element (after accname 1.2), at most 160 characters. */
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
  const said = ["alt", "placeholder", "title"].map((name) => tidy(attribute(element, name, 400), 160)).find(Boolean);
  const isField =
    element instanceof HTMLInputElement || /^(?:select|textarea)$/.test(tagOf(element)) || isEditor(element);
  return isField ? (said ?? "") : contentOf(element, 160) || (said ?? "");
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

/** Returns the text inside a node. Visits at most 256 nodes. */
export function contentOf(root: Node, max: number): string {
  let words = "";
  let left = 256;
  const pending: Node[] = [root];
  for (let node = pending.pop(); node && left > 0 && words.length < 2 * max; node = pending.pop()) {
    left -= 1;
    if (node instanceof Text) words += visibility.read(CharacterData.prototype, "data", node).slice(0, 4 * max);
    if (!(node instanceof Element)) continue;
    if (node !== root && (isSilent(node) || !isRendered(node))) continue;
    if (node !== root && /^(?:input|select|textarea)$/.test(tagOf(node))) continue;
    const said = node === root ? "" : attribute(node, "aria-label", max) || attribute(node, "alt", max);
    words += said === "" ? " " : ` ${said} `;
    if (said !== "") continue;
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

/** Returns the rendered children of an element: those of its shadow root, or the nodes assigned to a slot. */
export function childrenOf(element: Element): ArrayLike<Node> {
  const shadow = visibility.shadowOf(element);
  if (shadow) return visibility.read(Node.prototype, "childNodes", shadow);
  const slotted = element instanceof HTMLSlotElement ? element.assignedNodes() : [];
  return slotted.length > 0 ? slotted : visibility.read(Node.prototype, "childNodes", element);
}

/** Returns the state words that follow an element's name. */
export function stateOf(element: Element): string {
  const subject = (element instanceof HTMLLabelElement && element.control) || element;
  return [...fieldState(subject), ...flagsOf(subject)].map((word) => ` ${word}`).join("");
}

/** Returns the value of a field. For a password, only whether it is filled. */
function fieldState(element: Element): string[] {
  const shown = (value: string) => (value === "" ? [] : [`value=${quote(value, 200)}`]);
  if (element instanceof HTMLTextAreaElement) return shown(element.value);
  if (element instanceof HTMLSelectElement) {
    const chosen = [...element.selectedOptions].slice(0, 5).map((option) => option.label);
    const others = [...element.options].slice(0, 20).map((option) => quote(option.label, 40));
    const more = element.options.length > 20 ? [`and ${element.options.length - 20} more`] : [];
    return [...shown(chosen.join(", ")), `options=[${others.join(",")}]`, ...more];
  }
  if (isEditor(element)) return shown(contentOf(element, 200));
  if (!(element instanceof HTMLInputElement)) return [];
  const { type, value, files } = element;
  if (/^(?:checkbox|radio|submit|reset|button|image|hidden)$/.test(type)) return [];
  if (type === "file") return [...(files ?? [])].slice(0, 5).map(({ name }) => `file=${quote(name, 100)}`);
  if (type === "password") return ["type=password", ...(value === "" ? [] : ["filled"])];
  const plain = /^(?:text|search|number|range|color)$/.test(type);
  return [...(plain ? [] : [`type=${type}`]), ...shown(value)];
}

/** Returns the current state flags of an element, each a fixed word. */
function flagsOf(element: Element): string[] {
  const words: string[] = [];
  if (element instanceof HTMLInputElement && /^(?:checkbox|radio)$/.test(element.type))
    words.push(element.indeterminate ? "mixed" : element.checked ? "checked" : "unchecked");
  else if (/^(?:true|false|mixed)$/.test(attribute(element, "aria-checked"))) {
    const checked = attribute(element, "aria-checked");
    words.push(checked === "mixed" ? "mixed" : checked === "true" ? "checked" : "unchecked");
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
