import { expect, test } from "vitest";
import { StepPictureCache } from "../../workers/session/step-picture-cache.ts";

test("keeps the latest screenshots that fit", () => {
  const album = new StepPictureCache();
  for (const step of ["one", "two", "three"]) album.keep(step, Buffer.alloc(3 * 2 ** 20));
  expect(["one", "two", "three"].map((step) => album.find(step)?.length)).toEqual([
    undefined,
    3 * 2 ** 20,
    3 * 2 ** 20,
  ]);
});
