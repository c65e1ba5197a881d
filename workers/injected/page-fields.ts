/*
 * Fields whose contents must not appear in screenshots. These functions run in the page together with the modules
 * declared below; `page-script.ts` sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const state: {
  /** Fields that hold a secret, or a password that may have become readable. */
  secret: Set<WeakRef<Element>> | undefined;
  covers: Animation[] | undefined;
};

/** Marks a field as secret. */
export function keepSecret(field: Element): void {
  state.secret ??= new Set();
  for (const known of state.secret) {
    const element = known.deref();
    if (element === field) return;
    if (!element?.isConnected) state.secret.delete(known);
  }
  state.secret.add(new WeakRef(field));
}

/** Covers the contents of secret fields until `uncoverFields`. Returns whether there are any. */
export function coverFields(): boolean {
  for (const field of sight.queryAll(document, "input[type=password]"))
    if (field instanceof HTMLInputElement && field.value !== "") keepSecret(field);
  const grey = "#808080";
  const look = {
    ...{ color: grey, webkitTextFillColor: grey, caretColor: grey, backgroundColor: grey, backgroundImage: "none" },
    ...{ textShadow: "none", filter: "contrast(0)" },
  };
  // An animation leaves the document unchanged and overrides all page styles that are not `!important`.
  const cover = (field: Element) =>
    Element.prototype.animate.call(field, [look, look], { duration: 60_000, fill: "both" });
  uncoverFields();
  state.covers = [...(state.secret ?? [])].flatMap((known) => {
    const field = known.deref();
    return field?.isConnected ? cover(field) : [];
  });
  return state.covers.length > 0;
}

export function uncoverFields(): void {
  for (const cover of state.covers ?? []) cover.cancel();
  state.covers = undefined;
}
