import { descendantsOf, openFilesOf } from "../../../test/support/process-list.ts";
import { pssBytes } from "../processes.ts";

/** Resources that a process could leak. */
export interface Vitals {
  /** PSS: private memory and a share of shared memory. */
  readonly pssBytes: number;
  /** Open descriptors by kind: `socket`, `pipe`, `anon_inode`, `net` (namespaces), `file`. */
  readonly descriptors: Readonly<Record<string, number>>;
  /** Descendant processes. */
  readonly children: number;
}

/** Reads the resources of a process. */
export function vitalsOf(pid: number): Vitals {
  const descriptors: Record<string, number> = {};
  for (const target of openFilesOf(pid)) {
    const kind = /^(socket|pipe|anon_inode|net):/.exec(target)?.[1] ?? "file";
    descriptors[kind] = (descriptors[kind] ?? 0) + 1;
  }
  return { pssBytes: pssBytes(pid), descriptors, children: descendantsOf(pid).length };
}

/** Describes the resources of `now` that exceed `before` by more than `slack` per kind. */
export function excessOf(now: Vitals, before: Vitals, slack = 0): string[] {
  const descriptors = Object.entries(now.descriptors)
    .filter(([kind, count]) => count > (before.descriptors[kind] ?? 0) + slack)
    .map(([kind, count]) => `${count} ${kind} descriptors instead of ${before.descriptors[kind] ?? 0}`);
  const children =
    now.children > before.children + slack ? [`${now.children} children instead of ${before.children}`] : [];
  return [...descriptors, ...children];
}
