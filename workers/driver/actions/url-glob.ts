/** Maximum characters of an address that can match, as in `navigate`. Pages can set addresses of up to 2 MiB. */
const maxAddress = 8_192;

/**
 * Compiles the pattern of a url condition. `*` matches any characters but `/`, and `**` any characters. Every other
 * character matches itself.
 *
 * Simulates an NFA with one bit per state. A backtracking regular expression could run for hours on a hostile pattern
 * and block all sessions of this worker.
 */
export function urlGlob(glob: string): (address: string) => boolean {
  const statesBefore = new Map<string, bigint>();
  // States before `**` (`anything`) stay set at any character, states before `*` (`segment`) at any character but a
  // slash.
  let anything = 0n;
  let segment = 0n;
  let state = 1n;
  for (const [part = ""] of glob.matchAll(/\*+|[^*]/gs)) {
    if (part === "*") segment |= state;
    else if (part.startsWith("*")) anything |= state;
    else {
      statesBefore.set(part, (statesBefore.get(part) ?? 0n) | state);
      state <<= 1n;
    }
  }
  const end = state;
  return (address) => {
    if (address.length > maxAddress) return false;
    let reached = 1n;
    for (let at = 0; at < address.length && reached !== 0n; at += 1) {
      const character = address.charAt(at);
      const stays = character === "/" ? anything : anything | segment;
      reached = ((reached & (statesBefore.get(character) ?? 0n)) << 1n) | (reached & stays);
    }
    return (reached & end) !== 0n;
  };
}
