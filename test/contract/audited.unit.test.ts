import { expect, test } from "vitest";
import { builtServices } from "../../tools/described-services.ts";

/** Page actions, calls without side effects, and methods that write their own entry. */
const unaudited = [
  "TeamService.AcceptInvite",
  "SessionService.Navigate",
  "SessionService.Interact",
  "SessionService.Wait",
  "SessionService.Capture",
  "SessionService.Observe",
  "SessionService.Read",
  "SessionService.Fetch",
  "LlmSettingsService.TestByokLlmKey",
  "AgentInputService.SendInput",
  "AgentTurnService.SendMessage",
  "AgentTurnService.CancelTurn",
  "AgentViewService.CreateMediaToken",
];

// Public methods have no caller. They write their entries once they know the account.
test("every method with side effects has an audit action", () => {
  const writes = builtServices
    .flatMap(({ methods }) => methods)
    .filter(({ kind, route, rules }) => kind === "unary" && route?.verb !== "GET" && !rules.public);
  const without = writes.filter(({ rules }) => rules.audit === "").map(({ name }) => name);
  expect(without).toEqual(unaudited);
  const misnamed = writes.filter(({ rules: { audit } }) => audit !== "" && !/^[a-z_]+\.[a-z_]+$/.test(audit));
  expect(misnamed.map(({ name }) => name)).toEqual([]);
});
