import { useScene } from "./bad-input/live-scene.ts";
import { randomInputTest } from "./support/random-input.ts";

randomInputTest(useScene(), 1_000);
