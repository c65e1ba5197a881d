import * as visibility from "./page-visibility.ts";

/*
 * Hints for elements without a label, from the names of icons, files, classes and so on. Page text in a hint consists
 * only of lower-case letters, digits and hyphens, so it needs no quotes.
 */

/** Maximum characters of a hint. Too few for a page to write instructions for an agent. */
const longest = 24;

/** Words for appearance or structure, which do not indicate a purpose. */
const genericWords = new Set(
  (
    "icon icons ico btn button svg fa fas far fal fab bi ti mdi glyphicon lucide feather material symbols outlined rounded sharp " +
    "ui small large medium big tiny sm md lg xs xl xxl primary secondary tertiary default active selected current disabled " +
    "container wrapper wrap inner outer item box flex grid row col column cell d div span hover focus block inline hidden " +
    "visible left-0 right-0 absolute relative fixed js css is has the a an link img image picture tool nav clickable pointer " +
    "cursor rounded-full circle round round-full ghost solid outline text bg w h p m px py mx my"
  ).split(" "),
);

/** Prefixes of icon classes: `fa-trash`, `icon-trash`, `mdi-trash`. */
const iconClass =
  /^(?:icon|icons|ico|fa|bi|ti|mdi|glyphicon|lucide|feather|ri|la|pi|anticon|octicon|codicon)[-_]{1,2}(.+)$/i;

/** Returns a hint in round brackets, or an empty string. `isNamed` is whether the element has a text already. */
export function hintOf(element: Element, isNamed: boolean): string {
  const parts = [element, ...Element.prototype.querySelectorAll.call(element, "*")].slice(0, 12);
  const icon = firstOf(parts, iconName) || firstOf(parts, fileName);
  if (icon !== "") return `(icon: ${icon})`;
  if (isNamed) return "";
  if (/^(?:input|select|textarea)$/.test(tagOf(element))) {
    const name = dataName(element) || ownName(element);
    return name === "" ? "" : `(field: ${name})`;
  }
  const color = colorOf(parts);
  if (color !== "") return `(color: ${color})`;
  const name = firstOf(parts, dataName) || firstOf(parts, ownName);
  return name === "" ? "" : `(icon: ${name})`;
}

/** Returns the color of a swatch: a small element with only a background. */
function colorOf(parts: readonly Element[]): string {
  for (const part of parts.slice(0, 3)) {
    const { width, height } = visibility.boxOf(part);
    const { backgroundColor } = getComputedStyle(part);
    const [red, green, blue, alpha = 1] = (backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    if (width > 64 || height > 64 || parts.length > 3 || alpha < 0.1 || !backgroundColor.startsWith("rgb")) continue;
    // White, or the browser's own background of buttons.
    const isPlain = [255, 239].some((plain) => [red, green, blue].every((each) => each === plain));
    if (!isPlain) return `#${[red, green, blue].map((each = 0) => each.toString(16).padStart(2, "0")).join("")}`;
  }
  return "";
}

function firstOf(parts: readonly Element[], read: (element: Element) => string): string {
  for (const part of parts) {
    const hint = read(part);
    if (hint !== "") return hint;
  }
  return "";
}

/** Returns the name of an icon from its SVG symbol, its data attributes or its class. */
function iconName(element: Element): string {
  const symbol = attribute(element, "href") || attribute(element, "xlink:href");
  if (tagOf(element) === "use" && symbol !== "") return wordsOf(symbol.split(/[#/]/).at(-1) ?? "");
  const named = attribute(element, "data-icon") || attribute(element, "data-lucide");
  if (named !== "") return wordsOf(named);
  for (const each of attribute(element, "class").split(/\s+/)) {
    const [, name = ""] = iconClass.exec(each) ?? [];
    const hint = wordsOf(name);
    if (hint !== "") return hint;
  }
  return "";
}

/** Returns the file name of an image or of a background image, without its hash and extension. */
function fileName(element: Element): string {
  const source = element instanceof HTMLImageElement ? attribute(element, "src") : backgroundOf(element);
  if (source === "" || source.startsWith("data:")) return "";
  const [file = ""] = source.split(/[?#]/)[0]?.split("/").slice(-1) ?? [];
  return wordsOf(file.replace(/\.[a-z0-9]+$/i, "").replace(/[.-][0-9a-f]{6,}$/i, ""));
}

function backgroundOf(element: Element): string {
  const { backgroundImage, maskImage } = getComputedStyle(element);
  return /url\("([^"]{1,500})"\)/.exec(`${maskImage} ${backgroundImage}`)?.[1] ?? "";
}

function dataName(element: Element): string {
  const names = ["data-action", "data-testid", "data-test", "data-name", "data-cmd", "name", "id"];
  // One letter, such as an id `x`, has no meaning.
  return names.map((name) => wordsOf(attribute(element, name))).find((words) => words.length > 1) ?? "";
}

/** Returns the class with the most words. */
function ownName(element: Element): string {
  const names = attribute(element, "class").split(/\s+/).map(wordsOf).filter(Boolean);
  const count = (name: string) => name.split("-").length;
  return names.reduce((best, name) => (best === "" || count(name) > count(best) ? name : best), "");
}

/**
 * Returns the first three words of an identifier, without generic words, joined by hyphens. Returns an empty string if
 * the identifier looks generated.
 */
function wordsOf(identifier: string): string {
  const words = identifier
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "" && !genericWords.has(word));
  const isWord = (word: string) => word === "x" || /^(?=.*[aeiouy])[a-z]{2,}\d{0,2}$/.test(word);
  const known = words.filter((word) => isWord(word) || /^\d{1,3}$/.test(word));
  if (!known.some(isWord) || known.length < words.length) return "";
  return known.slice(0, 3).join("-").slice(0, longest);
}

function tagOf(element: Element): string {
  return visibility.read(Element.prototype, "localName", element);
}

function attribute(element: Element, name: string): string {
  return (Element.prototype.getAttribute.call(element, name) ?? "").slice(0, 300);
}
