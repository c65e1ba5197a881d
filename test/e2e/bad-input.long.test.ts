import { describe } from "vitest";
import { bearerTests } from "./bad-input/credentials.ts";
import { useScene } from "./bad-input/live-scene.ts";
import { endpointTests } from "./bad-input/requests.ts";

const scene = useScene();

describe("endpoints", () => endpointTests(scene, (all) => all));
describe("bearers", () => bearerTests(scene, (all) => all));
