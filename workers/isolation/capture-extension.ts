import { createHash, randomBytes } from "node:crypto";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Slot } from "./slot.ts";

/** What only an extension may: to have pictures of a tab, and to know which tab is which target of the protocol. */
const permissions = ["tabCapture", "debugger"];

/** An extension of ours in a browser's slot. It has an empty page and nothing that runs before that is opened. */
export interface CaptureExtension {
  readonly id: string;
  readonly directory: string;
  /** The address of its page, which nothing but the protocol can open. */
  readonly page: string;
}

/** Writes one that the browser may read, with a name that no page can know. */
export async function writeCaptureExtension(
  { directory, uid }: Pick<Slot, "directory" | "uid">,
  key = randomBytes(32),
): Promise<CaptureExtension> {
  const place = join(directory, "capture");
  const manifest = { manifest_version: 3, name: "Live view", version: "1", key: key.toString("base64"), permissions };
  await mkdir(place, { mode: 0o750 });
  const files = { "manifest.json": JSON.stringify(manifest), "capture.html": "<!doctype html>" };
  for (const [name, text] of Object.entries(files)) await writeFile(join(place, name), text, { mode: 0o640 });
  const id = idOf(key);
  if (uid !== undefined) {
    for (const path of [place, ...Object.keys(files).map((name) => join(place, name))]) await chown(path, 0, uid);
    await chmod(place, 0o750);
  }
  return { id, directory: place, page: `chrome-extension://${id}/capture.html` };
}

/** Chromium names an extension by the first half of its key's SHA-256, in letters from a to p. */
function idOf(key: Buffer): string {
  const digest = createHash("sha256").update(key).digest("hex").slice(0, 32);
  return [...digest].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16))).join("");
}

/** The flags that load it, and let it have any tab without a person's click on it. */
export function captureFlags({ id, directory }: CaptureExtension): string[] {
  return [
    `--load-extension=${directory}`,
    `--disable-extensions-except=${directory}`,
    `--allowlisted-extension-id=${id}`,
    // The namespace of the slot has no other interface to be reached by.
    "--allow-loopback-in-peer-connection",
  ];
}
