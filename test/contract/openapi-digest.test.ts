import { expect, test } from "vitest";
import { builtServices, describeServices } from "../../tools/described-services.ts";
import { digestOf } from "../../tools/openapi-digest.ts";

const document = describeServices(builtServices);
const text = JSON.stringify(document);
const lines = digestOf(document).split("\n");

// Only the first occurrence is replaced.
test.each([
  ["a bound", '"maximum":120000', '"maximum":60000', /^GET \/v1\/agent-sessions\/.id.\/turns\/.turn_id. /],
  ["a scope", '"bearer":["profiles:write"]', '"bearer":["profiles:read"]', /^POST \/v1\/profiles /],
  ["a status", '"410":{"$ref"', '"411":{"$ref"', /^[A-Z]+ \/v1\//],
  ["a parameter", '"name":"label","in":"query"', '"name":"tag","in":"query"', /^GET \/v1\/sessions /],
  ["a required field", '"required":["action"]', '"required":[]', /^InteractRequest: /],
  ["a value of an enum", '"enum":["provisioning",', '"enum":[', /^SessionStatus: /],
  ["a default", '"x-default":"headless-shell"', '"x-default":"chromium"', /^CreateSessionRequest: /],
  [
    "a keyword without a notation of its own",
    '"x-default":"headless-shell"',
    '"deprecated":true',
    /^CreateSessionRequest: /,
  ],
  ["the refusal of unknown fields", '"additionalProperties":false', '"minProperties":0', /^\w+: /],
])("the digest changes in one line with %s", (_name, from, to, changed) => {
  expect(text).toContain(from);
  const others = digestOf(JSON.parse(text.replace(from, to))).split("\n");
  const changes = others.filter((line, index) => line !== lines[index]);
  expect([others.length, changes]).toEqual([lines.length, [expect.stringMatching(changed)]]);
});
