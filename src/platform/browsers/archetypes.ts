// A copy of Playwright's list of devices. Importing Playwright would cost a process 54 MB and 0.5 s of CPU.
import devices from "./devices.json" with { type: "json" };

/** Emulated device of a session, independent of the browser. */
export interface Archetype {
  readonly name: string;
  readonly viewport: { readonly width: number; readonly height: number };
  readonly deviceScaleFactor: number;
  readonly isMobile: boolean;
  readonly hasTouch: boolean;
  /** Undefined for `desktop-chrome` and `desktop-chrome-hidpi`, which show the browser's real version. */
  readonly userAgent: string | undefined;
  /** Size of the device's screen, if larger than the viewport. */
  readonly screen: { readonly width: number; readonly height: number } | undefined;
}

export const defaultDevice = { archetype: "desktop-chrome", locale: "en-US", timezone: "UTC" } as const;

/** Maximum edit distance of suggestions, as a share of the name's length. At least two. */
const closeShare = 0.2;
const maxSuggestions = 5;

/** Maximum length of a name. Longer names get no suggestions, because comparing them with 200 names takes too long. */
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

/** All archetypes, ordered by name. */
export const archetypes: readonly Archetype[] = [...table.values()].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Returns an archetype by name. Spelling is normalized: `Pixel 7` is `pixel-7`. */
export function findArchetype(name: string): Archetype | undefined {
  return table.get(name) ?? table.get(toKebab(name.slice(0, maxName)));
}

/** Returns whether clients may choose the viewport of an archetype. */
export function isDesktop(archetype: Archetype): boolean {
  return !archetype.isMobile && !archetype.hasTouch;
}

/** Returns suggestions for an unknown name, closest first. */
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

/** Returns the edit distance, or 1 if a candidate starts with the wanted name: `pixel` suggests `pixel-7`. */
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
