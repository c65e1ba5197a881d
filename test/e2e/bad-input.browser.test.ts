import { describe } from "vitest";
import { oneOfEach } from "../support/one-of-each.ts";
import { bearerTests, credentialTests } from "./bad-input/credentials.ts";
import { fieldTests } from "./bad-input/fields.ts";
import { useScene } from "./bad-input/live-scene.ts";
import { repeatTests } from "./bad-input/repeats.ts";
import { endpointTests, requestTests } from "./bad-input/requests.ts";
import { streamTests } from "./bad-input/streams.ts";
import { randomInputTest } from "./support/random-input.ts";

const scene = useScene();

describe("fields", () => fieldTests(scene));
// One endpoint of each kind. bad-input.long.test.ts covers all endpoints.
describe("endpoints", () => endpointTests(scene, oneOfEach));
describe("requests", () => requestTests(scene));
describe("bearers", () => bearerTests(scene, oneOfEach));
describe("credentials", () => credentialTests(scene));
describe("repeats", () => repeatTests(scene));
describe("streams", () => streamTests(scene));
// Besides, each operation gets requests until it has failed and succeeded. random-input.long.test.ts sends more.
describe("random requests", () => randomInputTest(scene, 40));
