import type { Params } from "./client-command.ts";
import type { PolicyScene, Rule, Verdict } from "./policy-rules.ts";
import { domains, judgedChromium } from "./policy-table.ts";

/** What becomes of a command. */
interface MethodPolicy {
  readonly verdict: Rule | Verdict;
  /** Carried out while a person holds control, too. */
  readonly onlyReads: boolean;
}

const unjudged: Verdict = { kind: "unjudged" };

/** Every command that was judged, by its name. */
const methods: ReadonlyMap<string, MethodPolicy> = new Map(policies());

/** Why a domain is refused as a whole. */
const refusedDomains: ReadonlyMap<string, Verdict> = new Map(
  Object.entries(domains).flatMap(([domain, why]) =>
    typeof why === "string" ? [[domain, { kind: "refuse", why }]] : [],
  ),
);

function* policies(): Generator<[string, MethodPolicy]> {
  const pass: Verdict = { kind: "pass" };
  for (const [domain, policy] of Object.entries(domains)) {
    if (typeof policy === "string") continue;
    const { reads = "", passes = "", readsBy = {}, passesBy = {}, refuses = {} } = policy;
    const named = (name: string, verdict: Rule | Verdict, onlyReads: boolean): [string, MethodPolicy] => [
      `${domain}.${name}`,
      { verdict, onlyReads },
    ];
    for (const name of wordsOf(reads)) yield named(name, pass, true);
    for (const name of wordsOf(passes)) yield named(name, pass, false);
    for (const [name, verdict] of Object.entries(readsBy)) yield named(name, verdict, true);
    for (const [name, verdict] of Object.entries(passesBy)) yield named(name, verdict, false);
    for (const [why, names] of Object.entries(refuses))
      for (const name of wordsOf(names)) yield named(name, { kind: "refuse", why }, false);
  }
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

/** Says why a command is not carried out while a person holds control; undefined for one that only reads. */
export function refusalUnderControl(method: string): string | undefined {
  return methods.get(method)?.onlyReads === true
    ? undefined
    : "a person holds control of the session: until it is given back, clients only read";
}

/** Events by which a page can repeat what a person types. */
const repeating: ReadonlySet<string> = new Set([
  "Console.messageAdded",
  "Log.entryAdded",
  "Runtime.bindingCalled",
  "Runtime.consoleAPICalled",
  "Runtime.exceptionThrown",
]);

/** Whether an event is withheld while a person holds control. */
export function isWithheldUnderControl(event: string): boolean {
  return repeating.has(event);
}

/** What a command is answered that had not ended when a person took control. */
export const refusalAtTakeover = "a person has taken control of the session: how far the command has come is not known";

/** Whether a browser may have commands that nobody has judged, by its full version. */
export function browserMayKnowMore(version: string): boolean {
  return Number.parseInt(version, 10) > judgedChromium;
}

/** Returns what becomes of a command. `read` returns its parameters and `look` what else rules look at: most commands need neither. */
export function judge(method: string, read: () => Params, look: () => PolicyScene): Verdict {
  const verdict = methods.get(method)?.verdict ?? refusedDomains.get(method.slice(0, method.indexOf("."))) ?? unjudged;
  return typeof verdict === "function" ? verdict(read(), look()) : verdict;
}
