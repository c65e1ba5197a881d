/*
 * Fields whose contents no picture is to show. These functions run in the page, beside those of the files declared here:
 * `page-script.ts` sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const state: {
  /** Fields that hold a secret, or have held a password that can be read now. */
  secret: Set<WeakRef<Element>> | undefined;
  covers: Animation[] | undefined;
};

/** A field holds a secret from now on. */
export function keepSecret(field: Element): void {
  state.secret ??= new Set();
  for (const known of state.secret) {
    const element = known.deref();
    if (element === field) return;
    if (!element?.isConnected) state.secret.delete(known);
  }
  state.secret.add(new WeakRef(field));
}

/** Covers what secret fields hold, until that is taken back; says whether there are any. */
export function coverFields(): boolean {
  for (const field of sight.queryAll(document, "input[type=password]"))
    if (field instanceof HTMLInputElement && field.value !== "") keepSecret(field);
  const grey = "#808080";
  const look = {
    ...{ color: grey, webkitTextFillColor: grey, caretColor: grey, backgroundColor: grey, backgroundImage: "none" },
    ...{ textShadow: "none", filter: "contrast(0)" },
  };
  // An animation changes nothing of the document, and has its way over styles of the page that are not important.
  const cover = (field: Element) =>
    Element.prototype.animate.call(field, [look, look], { duration: 60_000, fill: "both" });
  uncoverFields();
  state.covers = [...(state.secret ?? [])].flatMap((known) => {
    const field = known.deref();
    return field?.isConnected ? cover(field) : [];
  });
  return state.covers.length > 0;
}

/** Takes the covers away. */
export function uncoverFields(): void {
  for (const cover of state.covers ?? []) cover.cancel();
  state.covers = undefined;
}
