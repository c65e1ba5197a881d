import type { SandboxObject } from "./sandbox-store.ts";

/** Parses a form in Stripe's notation: `line_items[0][price]=x` becomes `{ line_items: { 0: { price: "x" } } }`. */
export function readForm(params: URLSearchParams): SandboxObject {
  const form: SandboxObject = {};
  for (const [key, value] of params) {
    const names = key.split(/[[\]]+/).filter((name) => name !== "");
    const last = names.pop();
    let at = form;
    for (const name of names) {
      at[name] ??= {};
      at = at[name];
    }
    if (last !== undefined) at[last] = value;
  }
  return form;
}
