import { test } from "vitest";
import { testAsUser, userLimit } from "./as-user.ts";

test("an ordinary user's start and isolation pass the same tests", { timeout: userLimit }, () =>
  testAsUser("test/isolation", "test/start/start.system.test.ts"),
);
