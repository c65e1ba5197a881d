/** Maximum number of methods counted by name. */
const maxNames = 32;

/** Name under which all other methods are counted. */
const unnamed = "other";

const methodName = /^[A-Z][A-Za-z]{1,40}\.[a-z][A-Za-z]{1,60}$/;

/**
 * Totals over the CDP clients of all sessions of this process. `clients` counts connected clients. Messages are counted
 * by gateways.
 */
export const cdpProxyTotals = {
  clients: 0,
  /** Commands refused because the policy has no entry for their method, by method. */
  unlisted: new Map<string, number>(),
};

/**
 * Counts a command without a policy entry. Methods that the browser cannot know, and methods beyond the first 32, are
 * counted as `other`.
 */
export function countUnlisted(method: string, browserMayKnow: boolean): void {
  const { unlisted } = cdpProxyTotals;
  const isNamed = browserMayKnow && methodName.test(method) && (unlisted.has(method) || unlisted.size < maxNames);
  const name = isNamed ? method : unnamed;
  unlisted.set(name, (unlisted.get(name) ?? 0) + 1);
}
