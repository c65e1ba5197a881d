import * as visibility from "./page-visibility.ts";

/** Fields into which a secret was typed, and password fields with a value, which the page may make readable. */
const secretFields = new Set<WeakRef<Element>>();
let covers: readonly Animation[] = [];

export function keepSecret(field: Element): void {
  for (const known of secretFields) {
    const element = known.deref();
    if (element === field) return;
    if (!element?.isConnected) secretFields.delete(known);
  }
  secretFields.add(new WeakRef(field));
}

/** Covers the contents of secret fields until `uncoverFields`. Returns whether there are secret fields. */
export function coverFields(): boolean {
  for (const field of visibility.queryAll(document, "input[type=password]"))
    if (field instanceof HTMLInputElement && field.value !== "") keepSecret(field);
  const grey = "#808080";
  const style = {
    color: grey,
    webkitTextFillColor: grey,
    caretColor: grey,
    backgroundColor: grey,
    backgroundImage: "none",
    textShadow: "none",
    filter: "contrast(0)",
  };
  // An animation leaves the document unchanged and overrides all page styles that are not `!important`.
  const cover = (field: Element) =>
    Element.prototype.animate.call(field, [style, style], { duration: 60_000, fill: "both" });
  uncoverFields();
  covers = [...secretFields].flatMap((known) => {
    const field = known.deref();
    return field?.isConnected ? cover(field) : [];
  });
  return covers.length > 0;
}

export function uncoverFields(): void {
  for (const cover of covers) cover.cancel();
  covers = [];
}
