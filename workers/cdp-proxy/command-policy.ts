import type { Params } from "./client-command.ts";
import type { PolicyDecision, PolicyScene, Rule } from "./policy-rules.ts";
import { coveredChromium, domains } from "./policy-table.ts";

interface MethodPolicy {
  readonly decision: Rule | PolicyDecision;
  /** Allowed while a person holds control. */
  readonly onlyReads: boolean;
}

const unlisted: PolicyDecision = { kind: "unlisted" };

const methods: ReadonlyMap<string, MethodPolicy> = new Map(policies());

/** Decisions on domains that are refused completely. */
const refusedDomains: ReadonlyMap<string, PolicyDecision> = new Map(
  Object.entries(domains).flatMap(([domain, why]) =>
    typeof why === "string" ? [[domain, { kind: "refuse", why }]] : [],
  ),
);

function* policies(): Generator<[string, MethodPolicy]> {
  const pass: PolicyDecision = { kind: "pass" };
  for (const [domain, policy] of Object.entries(domains)) {
    if (typeof policy === "string") continue;
    const { reads = "", passes = "", readRules = {}, passRules = {}, refuses = {} } = policy;
    const named = (name: string, decision: Rule | PolicyDecision, onlyReads: boolean): [string, MethodPolicy] => [
      `${domain}.${name}`,
      { decision, onlyReads },
    ];
    for (const name of wordsOf(reads)) yield named(name, pass, true);
    for (const name of wordsOf(passes)) yield named(name, pass, false);
    for (const [name, decision] of Object.entries(readRules)) yield named(name, decision, true);
    for (const [name, decision] of Object.entries(passRules)) yield named(name, decision, false);
    for (const [why, names] of Object.entries(refuses))
      for (const name of wordsOf(names)) yield named(name, { kind: "refuse", why }, false);
  }
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

/** Returns the reason for refusing a command while a person holds control, or undefined if the command only reads. */
export function refusalUnderControl(method: string): string | undefined {
  return methods.get(method)?.onlyReads === true
    ? undefined
    : "a person holds control of the session: clients can only read until control is released";
}

/** Events through which a page can leak what a person types. */
const leakingEvents: ReadonlySet<string> = new Set([
  "Console.messageAdded",
  "Log.entryAdded",
  "Runtime.bindingCalled",
  "Runtime.consoleAPICalled",
  "Runtime.exceptionThrown",
]);

/** Returns whether an event is withheld while a person holds control. */
export function isWithheldUnderControl(event: string): boolean {
  return leakingEvents.has(event);
}

/** Error for a command that was pending when a person took control. */
export const refusalAtTakeover = "a person has taken control of the session: the command may have completed partially";

/** Returns whether a browser of this full version may have methods without a policy entry. */
export function browserMayKnowMore(version: string): boolean {
  return Number.parseInt(version, 10) > coveredChromium;
}

/** Decides on a command. Calls `read` and `readScene` only if the policy of the command's method is a rule. */
export function decideCommand(method: string, read: () => Params, readScene: () => PolicyScene): PolicyDecision {
  const decision =
    methods.get(method)?.decision ?? refusedDomains.get(method.slice(0, method.indexOf("."))) ?? unlisted;
  return typeof decision === "function" ? decision(read(), readScene()) : decision;
}
