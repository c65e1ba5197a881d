import { expect, test } from "vitest";
import type { OpenApiDocument } from "../../gateway/openapi/model.ts";
import { startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";
import { carryOutByHand, doneByHand } from "./support/by-hand.ts";
import { Described } from "./support/described.ts";

test("operations that need an e-mail, a code or a delay return responses described by the OpenAPI document", async () => {
  await using gateway = await startPeopleGateway();
  const document: OpenApiDocument = (await restClient({ url: gateway.url, key: "" })("/v1/openapi.json")).body;
  const described = new Described(document);
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  const answers = await carryOutByHand(gateway, document);
  expect([...answers.keys()].toSorted()).toEqual(doneByHand.toSorted());
  const faults = operations.flatMap((operation) => {
    const answer = answers.get(operation.operationId);
    return answer ? described.faultsOf(operation, answer).map((fault) => `${operation.operationId}: ${fault}`) : [];
  });
  expect(faults).toEqual([]);
}, 60_000);
