import { createHash, randomBytes } from "node:crypto";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Slot } from "./slot.ts";

/** Extension permissions to capture a tab and to map tabs to CDP targets. */
const permissions = ["tabCapture", "debugger"];

/** The capture extension in a browser's isolation slot. It has one empty page and no background script. */
export interface CaptureExtension {
  readonly id: string;
  readonly directory: string;
  /** URL of the extension's page, which only CDP can open. */
  readonly page: string;
}

/** Writes the extension, readable by the browser, with an id that pages cannot guess. */
export async function writeCaptureExtension(
  { directory, uid }: Pick<Slot, "directory" | "uid">,
  key = randomBytes(32),
): Promise<CaptureExtension> {
  const extensionDirectory = join(directory, "capture");
  const manifest = { manifest_version: 3, name: "Live view", version: "1", key: key.toString("base64"), permissions };
  await mkdir(extensionDirectory, { mode: 0o750 });
  const files = { "manifest.json": JSON.stringify(manifest), "capture.html": "<!doctype html>" };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(extensionDirectory, name), text, { mode: 0o640 });
  const id = idOf(key);
  if (uid !== undefined) {
    for (const path of [extensionDirectory, ...Object.keys(files).map((name) => join(extensionDirectory, name))])
      await chown(path, 0, uid);
    await chmod(extensionDirectory, 0o750);
  }
  return { id, directory: extensionDirectory, page: `chrome-extension://${id}/capture.html` };
}

/** Returns Chromium's extension id: the first half of the key's SHA-256, as letters a to p. */
function idOf(key: Buffer): string {
  const digest = createHash("sha256").update(key).digest("hex").slice(0, 32);
  return [...digest].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16))).join("");
}

/** Returns the flags that load the extension and allow tab capture without a click. */
export function captureFlags({ id, directory }: CaptureExtension): string[] {
  return [
    `--load-extension=${directory}`,
    `--disable-extensions-except=${directory}`,
    `--allowlisted-extension-id=${id}`,
    // Peer connections use loopback, because the slot's network namespace has no other interface.
    "--allow-loopback-in-peer-connection",
  ];
}
