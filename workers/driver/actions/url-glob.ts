/** Longest address that a pattern is held against, as long as those that navigate takes; a page can give itself 2 MiB. */
const maxAddress = 8_192;

/**
 * Makes the test of a url condition: `*` stands for any characters but `/`, `**` for any, all else for itself.
 *
 * It takes the address character by character and keeps the set of all places in the pattern that it may have come to,
 * one bit for each. A regular expression would go back and try again, which a pattern of a client's can make last for
 * hours, and everybody's sessions on this worker with it.
 */
export function urlGlob(glob: string): (address: string) => boolean {
  const places = new Map<string, bigint>();
  // Places where any character, or any but a slash, leaves one where one is.
  let anything = 0n;
  let segment = 0n;
  let place = 1n;
  for (const [part = ""] of glob.matchAll(/\*+|[^*]/gs)) {
    if (part === "*") segment |= place;
    else if (part.startsWith("*")) anything |= place;
    else {
      places.set(part, (places.get(part) ?? 0n) | place);
      place <<= 1n;
    }
  }
  const end = place;
  return (address) => {
    if (address.length > maxAddress) return false;
    let reached = 1n;
    for (let at = 0; at < address.length && reached !== 0n; at += 1) {
      const character = address.charAt(at);
      const stays = character === "/" ? anything : anything | segment;
      reached = ((reached & (places.get(character) ?? 0n)) << 1n) | (reached & stays);
    }
    return (reached & end) !== 0n;
  };
}
