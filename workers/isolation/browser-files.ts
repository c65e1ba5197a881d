import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { artifactsDirectory, profileDirectory, type SlotDirectories } from "./slot-block.ts";

/**
 * Disables HTTP authentication. Full Chromium would open an invisible password prompt that blocks input to the page.
 * Without authentication schemes, full Chromium shows the body of the 401 response, as headless shell does.
 */
const noPasswordPrompt = { auth: { schemes: "" } };

/** Writes the initial profile files of a browser with a user data directory. */
export async function writeBrowserFiles({ directory, storage, uid }: SlotDirectories): Promise<void> {
  const profile = profileDirectory(directory);
  await writeFile(join(profile, "Local State"), JSON.stringify(noPasswordPrompt), { mode: 0o644 });
  const own = join(profile, "Default");
  const preferences = join(own, "Preferences");
  // Fallback download directory: the end of another client's CDP session can reset the download behavior.
  const download = { default_directory: artifactsDirectory(storage), prompt_for_download: false };
  // Without developer mode, an unpacked extension is loaded only once.
  const extensions = { ui: { developer_mode: true } };
  await mkdir(own, { recursive: true, mode: 0o700 });
  await writeFile(preferences, JSON.stringify({ download, extensions }), { mode: 0o600 });
  if (uid === undefined) return;
  // The browser rewrites both paths, so it must own them. It is not running yet and cannot replace them by links.
  for (const path of [own, preferences]) await chown(path, uid, uid);
}
