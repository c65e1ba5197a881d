import { describe, expect, it } from "vitest";
import { errorTable, isErrorSlug } from "../../src/platform/error-table.ts";
import { fail, failFaults, restoreFailure } from "../../src/platform/errors.ts";
import { problemJson, toProblem } from "../../src/platform/problem.ts";

describe("a failure", () => {
  it("should take the extensions of its slug alone, by the compiler's word", () => {
    const details = { detail: "told" };
    fail("driver-error", { worker_lost: true }, details);
    fail("profile-in-use", { active_session_id: "ses_1" }, details);
    // @ts-expect-error: without a detail.
    fail("not-found");
    // @ts-expect-error: a slug without extensions takes none.
    fail("not-found", { session_id: "ses_1" }, details);
    // @ts-expect-error: not one of this slug.
    fail("driver-error", { said: "no" }, details);
    // @ts-expect-error: of another type.
    fail("driver-error", { capture_bytes: "many" }, details);
    // @ts-expect-error: none of its values.
    expect(fail("proxy-validation-failed", { reason: "bored" }, details).slug).toBe("proxy-validation-failed");
  });

  it("should come back from where it was stored or sent with what the table has of it", () => {
    const sent = { worker_lost: true, capture_bytes: "many", said: "no" };
    const restored = restoreFailure("driver-error", sent, { detail: "lost" });
    expect(restored).toMatchObject({ slug: "driver-error", extensions: { worker_lost: true }, detail: "lost" });
    expect(restored.extensions).not.toHaveProperty("said");
    expect(restored.extensions).not.toHaveProperty("capture_bytes");
  });

  it("should list at most 50 faults, and name the body where a fault has no field", () => {
    const faults = Array.from({ length: 60 }, (_, index) => ({
      field: index === 0 ? "" : `f${index}`,
      message: "is odd",
    }));
    const failure = failFaults("validation-failed", faults);
    expect([failure.detail, failure.errors.length, failure.errors[0]?.field]).toEqual(["body: is odd", 50, "body"]);
  });
});

describe("a problem", () => {
  it("should show extensions beside its members, and nothing that is empty", () => {
    const failure = fail("profile-in-use", { active_session_id: "ses_1" }, { detail: "told" });
    expect(problemJson(toProblem(failure, "http://a.example/errors", "req_1"))).toEqual({
      type: "http://a.example/errors/profile-in-use",
      title: "Profile in use",
      status: 409,
      detail: "told",
      instance: "req_1",
      active_session_id: "ses_1",
    });
  });

  it.each(Object.keys(errorTable).filter(isErrorSlug))("should have a detail whatever was said of it: %s", (slug) => {
    expect(toProblem(restoreFailure(slug, {}, {}), "", "").detail).not.toBe("");
  });
});
