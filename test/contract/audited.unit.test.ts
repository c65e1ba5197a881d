import { expect, test } from "vitest";
import { builtServices } from "../../tools/described-services.ts";

/** What is done to a page, or is no change; or to another account than the caller's, into whose log the method writes. */
const unaudited = [
  "TeamService.AcceptInvite",
  "SessionService.Navigate",
  "SessionService.Interact",
  "SessionService.Wait",
  "SessionService.Capture",
  "SessionService.Observe",
  "LlmSettingsService.TestByokLlmKey",
  "AgentInputService.SendInput",
  "AgentTurnService.SendMessage",
  "AgentTurnService.CancelTurn",
  "AgentViewService.CreateMediaToken",
];

// Public methods have no caller: they write their entries by themselves, once they know whom those are about.
test("every method by which a caller changes something has an action of the audit log", () => {
  const writes = builtServices
    .flatMap(({ methods }) => methods)
    .filter(({ kind, route, rules }) => kind === "unary" && route?.verb !== "GET" && !rules.public);
  const without = writes.filter(({ rules }) => rules.audit === "").map(({ name }) => name);
  expect(without).toEqual(unaudited);
  const misnamed = writes.filter(({ rules: { audit } }) => audit !== "" && !/^[a-z_]+\.[a-z_]+$/.test(audit));
  expect(misnamed.map(({ name }) => name)).toEqual([]);
});
