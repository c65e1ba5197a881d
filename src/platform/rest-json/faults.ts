import { type FieldFault, maxFaults } from "../errors.ts";

// A name that the client made up may be as long as a body; its beginning is enough to find it.
const longestName = 200;

/** Adds a fault, whose message may have to be made, to those of a request, unless so many are known already that no more are listed. */
export function addFault(faults: FieldFault[], field: string, message: string | (() => string)): void {
  if (faults.length >= maxFaults) return;
  faults.push({ field: field.slice(0, longestName), message: typeof message === "string" ? message : message() });
}

/** Puts the name of the value in which they were found before the faults from an index on. */
export function prefixFaults(faults: FieldFault[], from: number, name: string): void {
  for (let i = from; i < faults.length; i++) {
    const fault = faults[i];
    if (fault) faults[i] = { field: joinPath(name, fault.field), message: fault.message };
  }
}

/** Joins two parts of a path as faults write it: `action.frame[1]`. */
export function joinPath(outer: string, inner: string): string {
  return outer === "" || inner === "" || inner.startsWith("[") ? `${outer}${inner}` : `${outer}.${inner}`;
}

/** Says whether a path is another one, or leads into it. */
export function isInside(path: string, outer: string): boolean {
  return outer === "" || path === outer || path.startsWith(`${outer}.`) || path.startsWith(`${outer}[`);
}
