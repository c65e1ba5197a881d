import { expect, test } from "vitest";
import { loggedAddress, loggedText } from "../../../workers/pages/log-text.ts";

test.each([
  ["https://example.com/a/b?item=canary&page=canary#canary", "https://example.com/a/b?item&page"],
  ["https://ada:canary@example.com:8443/a", "https://example.com:8443/a"],
  ["https://ada@example.com", "https://example.com"],
  ["https://example.com/?canary", "https://example.com/"],
  ["https://example.com/?canary&item=canary", "https://example.com/?item"],
  ["https://example.com/?item=canary?canary=canary", "https://example.com/?item"],
  ["https://example.com/a;session=canary/b;v=canary?x=canary", "https://example.com/a/b?x"],
  ["https://example.com/#/path?canary=canary", "https://example.com/"],
  ["https://example.com?item=canary", "https://example.com?item"],
  ["HTTPS://EXAMPLE.com/A", "HTTPS://EXAMPLE.com/A"],
  ["wss://example.com/socket?token=canary", "wss://example.com/socket?token"],
  ["data:text/html,canary", "data:"],
  ["blob:https://example.com/canary", "blob:"],
  ["javascript:canary()", "javascript:"],
  ["about:blank", "about:blank"],
  ["about:blank#canary", "about:blank"],
  ["about:srcdoc?canary", "about:srcdoc"],
  ["chrome-error://canary/", "chrome-error:"],
  ["https:canary", "https://"],
  ["canary", ""],
  ["", ""],
])("the URL %s is logged as %s", (url, logged) => {
  expect(loggedAddress(url)).toBe(logged);
});

test.each([
  [
    "Error: refused at https://example.com/app.js?v=canary:1:2 (https://ada:canary@example.com/#canary)",
    "Error: refused at https://example.com/app.js?v (https://example.com/)",
  ],
  ['{"url":"wss://example.com/?token=canary"}', '{"url":"wss://example.com/?token"}'],
  ["an image data:image/png;base64,canary", "an image data:"],
  ["no URL: 12:30", "no URL: 12:30"],
])("the URLs in the text %s are reduced", (text, logged) => {
  expect(loggedText(text)).toBe(logged);
});

test("a logged text has at most 500 characters and is well-formed", () => {
  expect(loggedText("x".repeat(10_000))).toHaveLength(500);
  expect(loggedText(`${"x".repeat(499)}😀`).isWellFormed()).toBe(true);
  expect(loggedAddress(`https://example.com/${"x".repeat(10_000)}`)).toHaveLength(500);
});

test("hostile URLs and texts take linear time", () => {
  const began = performance.now();
  for (const part of ["https://", "?a=", ";", "@", "&", "data:"]) {
    loggedAddress(`https://example.com/${part.repeat(500_000)}`);
    loggedText(part.repeat(500_000));
  }
  expect(performance.now() - began).toBeLessThan(5_000);
});
