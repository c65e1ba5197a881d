import { expect, test } from "vitest";
import { builtServices } from "../../tools/described-services.ts";
import { walkAudit } from "./walk/audit-walk.ts";
import { methodsAt, oneOfEachKind } from "./walk/methods.ts";
import { refusedEverywhere, unlogged, writes } from "./walk/writes.ts";

test("every method with side effects is either audited by the walk or known to leave no entry", () => {
  const changing = builtServices
    .flatMap(({ methods }) => methods)
    .filter(({ kind, method, route, rules }) => {
      const changes = route?.verb !== "GET" || rules.audit !== "";
      return kind === "unary" && changes && method.idempotency !== 1;
    });
  const known = [...Object.keys(writes), ...unlogged, ...refusedEverywhere];
  expect(known.toSorted()).toEqual(changing.map(({ name }) => name).toSorted());
});

// All writes over REST, and one of each kind over the other protocols. audit-walk.long.test.ts makes all.
walkAudit((transport) => {
  const methods = methodsAt(transport).filter(({ name }) => name in writes);
  return transport === "REST" ? methods : oneOfEachKind(methods);
});
