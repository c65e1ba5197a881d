import { type FieldFault, maxFaults } from "../errors.ts";

// Longer field names are truncated, because clients may send names of any length.
const longestName = 200;

/** Adds a fault, unless the maximum number is reached. If `message` is a function, it is called only when needed. */
export function addFault(faults: FieldFault[], field: string, message: string | (() => string)): void {
  if (faults.length >= maxFaults) return;
  faults.push({ field: field.slice(0, longestName), message: typeof message === "string" ? message : message() });
}

/** Prefixes the paths of the faults at index `from` and later with `name`. */
export function prefixFaults(faults: FieldFault[], from: number, name: string): void {
  for (let i = from; i < faults.length; i++) {
    const fault = faults[i];
    if (fault) faults[i] = { field: joinPath(name, fault.field), message: fault.message };
  }
}

/** Joins two parts of a path: `action.frame[1]`. */
export function joinPath(outer: string, inner: string): string {
  return outer === "" || inner === "" || inner.startsWith("[") ? `${outer}${inner}` : `${outer}.${inner}`;
}

/** Returns whether a path equals or lies within another. */
export function isInside(path: string, outer: string): boolean {
  return outer === "" || path === outer || path.startsWith(`${outer}.`) || path.startsWith(`${outer}[`);
}
