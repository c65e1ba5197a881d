import { test } from "vitest";
import { testAsUser, userLimit } from "./as-user.ts";

test("an ordinary user's start comes up in a copy that the user owns", { timeout: userLimit }, () =>
  testAsUser("test/start/start.test.ts", "-t", "npm start comes up"),
);
