import { afterAll, beforeAll, expect, test } from "vitest";
import { DoomedService } from "../chaos/doomed-service.ts";
import { ProfileSites } from "../support/profile-sites.ts";

let doomed: DoomedService;
const sites = new ProfileSites(3);

beforeAll(async () => {
  await sites.start();
  doomed = await DoomedService.start({ EGRESS_ALLOW: "127.0.0.0/8" });
});

afterAll(async () => {
  await doomed[Symbol.asyncDispose]();
  await sites.stop();
});

test("storage of a profile's sites is restored in the next session, also in the other runtime", async () => {
  const rest: DoomedService["rest"] = (path, body, init) => doomed.rest(path, body, init);
  const { body: profile } = await rest("/v1/profiles", { name: "Three sites" });
  let found = "";
  for (const runtime of ["headless-shell", "chromium", "headless-shell"]) {
    const session = await doomed.create({ profile_id: profile.id, runtime });
    const left = `${found}+`;
    const seen = await sites.visit(rest, session, { found, left });
    if (found !== "") expect(seen).toEqual(sites.whole);
    expect((await rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    found = left;
  }
  await doomed.expectCleanEnd();
}, 120_000);
