import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { artifactsDirectory, profileDirectory, type SlotDirectories } from "./slot-block.ts";

/**
 * Full Chromium would ask a person for a name and a password, in a window that nobody sees and behind which the page
 * takes no input. A browser without a way to authenticate shows the page of the 401, as headless shell does.
 */
const noPasswordPrompt = { auth: { schemes: "" } };

/** Writes what a browser with a directory is to find there when it starts. */
export async function writeBrowserFiles({ directory, storage, uid }: SlotDirectories): Promise<void> {
  const profile = profileDirectory(directory);
  await writeFile(join(profile, "Local State"), JSON.stringify(noPasswordPrompt), { mode: 0o644 });
  const own = join(profile, "Default");
  const preferences = join(own, "Preferences");
  // Where downloads go should we not have said so, which the end of another's CDP session may undo.
  const download = { default_directory: artifactsDirectory(storage), prompt_for_download: false };
  // Without it an extension from a directory is loaded once, and not again.
  const extensions = { ui: { developer_mode: true } };
  await mkdir(own, { recursive: true, mode: 0o700 });
  await writeFile(preferences, JSON.stringify({ download, extensions }), { mode: 0o600 });
  if (uid === undefined) return;
  // The browser writes both anew; none of its processes runs yet.
  for (const path of [own, preferences]) await chown(path, uid, uid);
}
