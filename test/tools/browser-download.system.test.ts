import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { canStart, installByPlaywright } from "../../tools/browser-install.ts";
import { longTest } from "../support/long-test.ts";
import { storedZip } from "./stored-zip.ts";

const script = "#!/bin/sh\necho Chromium 1.2.3\n";

let server: Server;
let dataDirectory: string;
const asked: string[] = [];

/** Serves the paths of Playwright's browsers with an archive that contains the executable. */
function startHost(): Server {
  return createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const browser = /^\/builds\/cft\/[\d.]+\/[\w-]+\/((chrome|chrome-headless-shell)-(?:linux|mac)[\w-]*)\.zip$/.exec(
      path,
    );
    const ffmpeg = /^\/builds\/ffmpeg\/\d+\/(ffmpeg-\w+?)(?:-arm64)?\.zip$/.exec(path);
    const file = browser ? `${browser[1]}/${browser[2]}` : ffmpeg?.[1];
    if (file === undefined) response.writeHead(404).end();
    else response.end(storedZip(file, script));
  });
}

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), "pilothouse-browsers-"));
  server = startHost();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The host listens on no port.");
  vi.stubEnv("PLAYWRIGHT_DOWNLOAD_HOST", `http://127.0.0.1:${address.port}`);
});

afterAll(async () => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(dataDirectory, { recursive: true, force: true });
});

test("a download of Playwright from the environment's host is found and starts", async () => {
  const search = { env: {}, dataDirectory, platform: process.platform, disk: realDisk };
  const directory = join(dataDirectory, "browsers");

  await installByPlaywright(directory, ["chromium", "chromium-headless-shell"], false);

  const found = findBrowsers(search);
  expect(Object.keys(found)).toEqual(["chromium", "headless-shell"]);
  for (const path of Object.values(found)) {
    expect(path.startsWith(`${directory}/`)).toBe(true);
    expect(canStart(path)).toBe(true);
  }
  expect(asked.filter((path) => path.startsWith("/builds/cft/"))).toHaveLength(2);
});

test("an installation that fails ends with an error", async () => {
  const install = installByPlaywright(join(dataDirectory, "none"), ["unknown"], false);
  await expect(install).rejects.toThrow("ended with 1");
});

longTest("a download that is missing at the host ends with an error", async () => {
  vi.stubEnv("PLAYWRIGHT_DOWNLOAD_HOST", `${process.env.PLAYWRIGHT_DOWNLOAD_HOST}/nothing-here`);
  const install = installByPlaywright(join(dataDirectory, "none"), ["chromium-headless-shell"], false);
  await expect(install).rejects.toThrow("ended with 1");
});
