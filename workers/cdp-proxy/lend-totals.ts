/** How many methods are counted by their names. */
const mostNames = 32;

/** The name under which all other methods are counted. */
const unnamed = "other";

const methodName = /^[A-Z][A-Za-z]{1,40}\.[a-z][A-Za-z]{1,60}$/;

/** What is counted of the clients of all sessions of this process; their messages are counted by the gateways. */
export const lendTotals = {
  /** Those that are connected. */
  clients: 0,
  /** Commands that were refused because nobody has judged their methods, by method. */
  unjudged: new Map<string, number>(),
};

/** Counts a command that nobody has judged, by its name if the browser may know it: clients make up names without end. */
export function countUnjudged(method: string, browserMayKnow: boolean): void {
  const { unjudged } = lendTotals;
  const isNamed = browserMayKnow && methodName.test(method) && (unjudged.has(method) || unjudged.size < mostNames);
  const name = isNamed ? method : unnamed;
  unjudged.set(name, (unjudged.get(name) ?? 0) + 1);
}
