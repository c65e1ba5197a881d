import { describe, expect, it } from "vitest";
import { errorTable, isErrorSlug } from "../../src/platform/error-table.ts";
import { fail, failFaults, restoreFailure } from "../../src/platform/errors.ts";
import { problemJson, toProblem } from "../../src/platform/problem.ts";

describe("a failure", () => {
  it("accepts only the extensions of its slug, checked by the compiler", () => {
    const details = { detail: "told" };
    fail("driver-error", { worker_lost: true }, details);
    fail("profile-in-use", { active_session_id: "ses_1" }, details);
    // @ts-expect-error: missing detail.
    fail("not-found");
    // @ts-expect-error: the slug has no extensions.
    fail("not-found", { session_id: "ses_1" }, details);
    // @ts-expect-error: extension of another slug.
    fail("driver-error", { said: "no" }, details);
    // @ts-expect-error: wrong type.
    fail("driver-error", { capture_bytes: "many" }, details);
    // @ts-expect-error: not one of its values.
    expect(fail("proxy-validation-failed", { reason: "bored" }, details).slug).toBe("proxy-validation-failed");
  });

  it("is restored from storage or the network with the members that the error table defines", () => {
    const sent = { worker_lost: true, capture_bytes: "many", said: "no" };
    const restored = restoreFailure("driver-error", sent, { detail: "lost" });
    expect(restored).toMatchObject({ slug: "driver-error", extensions: { worker_lost: true }, detail: "lost" });
    expect(restored.extensions).not.toHaveProperty("said");
    expect(restored.extensions).not.toHaveProperty("capture_bytes");
  });

  it("lists at most 50 faults and names the body if a fault has no field", () => {
    const faults = Array.from({ length: 60 }, (_, index) => ({
      field: index === 0 ? "" : `f${index}`,
      message: "is odd",
    }));
    const failure = failFaults("validation-failed", faults);
    expect([failure.detail, failure.errors.length, failure.errors[0]?.field]).toEqual(["body: is odd", 50, "body"]);
  });
});

describe("a problem", () => {
  it("includes extensions as members and omits empty values", () => {
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

  it.each(Object.keys(errorTable).filter(isErrorSlug))("has a detail for any input: %s", (slug) => {
    expect(toProblem(restoreFailure(slug, {}, {}), "", "").detail).not.toBe("");
  });
});
