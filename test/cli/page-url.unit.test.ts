import { expect, test } from "vitest";
import { pageUrl } from "../../sdk/cli/src/page-url.ts";

test.each([
  ["https://example.com/a?b#c", "https://example.com/a?b#c"],
  ["HTTP://example.com", "HTTP://example.com"],
  ["about:blank", "about:blank"],
  ["example.com", "https://example.com"],
  ["example.com:8443/a", "https://example.com:8443/a"],
  ["localhost", "http://localhost"],
  ["localhost:3000/a", "http://localhost:3000/a"],
  ["127.0.0.1:3000", "http://127.0.0.1:3000"],
  ["[::1]:3000", "http://[::1]:3000"],
])("takes %s for %s", (text, url) => {
  expect(pageUrl(text)).toBe(url);
});

test.each(["", "ses_01jd2z5r1v7k9m3q8t4w6x0y2b", "ftp://example.com", "a shirt", "javascript:alert(1)"])(
  "rejects %j",
  (text) => {
    expect(() => pageUrl(text)).toThrow("expected a URL with http or https");
  },
);
