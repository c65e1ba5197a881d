import { expect, test } from "vitest";
import { parseSentinelUrl } from "../../src/platform/redis/sentinel-url.ts";

test("the URL of sentinels is parsed into the URLs of all servers", () => {
  const query = "sentinel_username=watcher&sentinel_password=p%26ss%20of%2Fit";
  const parsed = parseSentinelUrl(`rediss+sentinel://user:p%40ss@one:26380,two,[::1]:26381/main/3?${query}`);
  expect(parsed?.name).toBe("main");
  expect(parsed?.sentinels).toEqual([
    "rediss://watcher:p&ss%20of%2Fit@one:26380",
    "rediss://watcher:p&ss%20of%2Fit@two:26379",
    "rediss://watcher:p&ss%20of%2Fit@[::1]:26381",
  ]);
  expect(parsed?.urlOf({ host: "10.0.0.1", port: "6380" })).toBe("rediss://user:p%40ss@10.0.0.1:6380/3");
  expect(parsed?.urlOf({ host: "fd00::1", port: "6380" })).toBe("rediss://user:p%40ss@[fd00::1]:6380/3");
});

test("credentials and the database are optional in the URL of sentinels", () => {
  const parsed = parseSentinelUrl("redis+sentinel://one/main");
  expect(parsed?.sentinels).toEqual(["redis://one:26379"]);
  expect(parsed?.urlOf({ host: "two", port: "6379" })).toBe("redis://two:6379");
});

test.each([
  "redis://one/main",
  "redis+sentinel://one",
  "redis+sentinel:///main",
  "redis+sentinel://one:x/main",
  "redis+sentinel://one/a%zz",
])("%s is no URL of sentinels", (text) => expect(parseSentinelUrl(text)).toBeUndefined());
