// A copy: with the package the list comes from, a process would take 54 MB and 0.5 s of CPU more.
import devices from "./devices.json" with { type: "json" };

/** The emulated device of a session, as far as it does not depend on the browser that runs it. */
export interface Archetype {
  readonly name: string;
  readonly viewport: { readonly width: number; readonly height: number };
  readonly deviceScaleFactor: number;
  readonly isMobile: boolean;
  readonly hasTouch: boolean;
  /** Absent on our own desktop archetypes: they show the browser's own version. */
  readonly userAgent: string | undefined;
  /** The device's whole screen, where it is known to be larger than the page. */
  readonly screen: { readonly width: number; readonly height: number } | undefined;
}

/** What a session gets whose creator does not choose. */
export const defaultDevice = { archetype: "desktop-chrome", locale: "en-US", timezone: "UTC" } as const;

/** Names this far from what was asked for are offered: one slip of the finger in five letters, and no less than two. */
const closeShare = 0.2;
const maxSuggestions = 5;

/** A longer text is no slip of the finger, and comparing it with 200 names would take others' time. */
const maxName = 64;

const table: ReadonlyMap<string, Archetype> = new Map([
  ...Object.entries(devices).map(([name, device]) => {
    const { viewport, deviceScaleFactor, isMobile, hasTouch, userAgent } = device;
    const screen = "screen" in device ? (device.screen as Archetype["screen"]) : undefined;
    const archetype = { name: toKebab(name), viewport, deviceScaleFactor, isMobile, hasTouch, userAgent, screen };
    return [archetype.name, archetype] as const;
  }),
  ...[desktop("desktop-chrome", 1), desktop("desktop-chrome-hidpi", 2)].map(
    (archetype) => [archetype.name, archetype] as const,
  ),
]);

/** All archetypes, in alphabetical order of their names. */
export const archetypes: readonly Archetype[] = [...table.values()].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Finds an archetype by its name, in whatever way that is written: `Pixel 7` is `pixel-7`. */
export function findArchetype(name: string): Archetype | undefined {
  return table.get(name) ?? table.get(toKebab(name.slice(0, maxName)));
}

/** Whether a client may choose the size of an archetype's pages. */
export function isDesktop(archetype: Archetype): boolean {
  return !archetype.isMobile && !archetype.hasTouch;
}

/** Gives the names that somebody may have meant by one that does not exist, the closest first. */
export function closeArchetypes(name: string): string[] {
  if (name.length > maxName) return [];
  const wanted = toKebab(name);
  const limit = Math.max(2, Math.floor(wanted.length * closeShare));
  return archetypes
    .map(({ name: candidate }) => ({ candidate, distance: distanceOf(wanted, candidate) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxSuggestions)
    .map(({ candidate }) => candidate);
}

function desktop(name: string, deviceScaleFactor: number): Archetype {
  const viewport = { width: 1280, height: 720 };
  const screen = { width: 1920, height: 1080 };
  return { name, viewport, deviceScaleFactor, isMobile: false, hasTouch: false, userAgent: undefined, screen };
}

function toKebab(name: string): string {
  return name
    .toLowerCase()
    .replaceAll("+", "-plus")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
}

/** The part of a longer name counts as close: `pixel` offers `pixel-7`. Else the edit distance of the two. */
function distanceOf(wanted: string, candidate: string): number {
  if (wanted.length >= 3 && candidate.startsWith(wanted)) return 1;
  let previous = Array.from({ length: candidate.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...wanted].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...candidate].entries()) {
      const replaced = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(replaced, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? wanted.length;
}
