import { afterAll, expect } from "vitest";
import { takeLeaks } from "./leaks.ts";

// For every test file: no service that it ran has written a secret into its log or its metrics.
afterAll(() => expect(takeLeaks()).toEqual([]));
