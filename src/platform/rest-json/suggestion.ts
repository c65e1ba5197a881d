/** Maps terms of other tools to terms of this API, the most likely first. */
const synonyms: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    click: ["tap"],
    dblclick: ["tap"],
    double_click: ["tap"],
    press: ["key", "tap"],
    press_key: ["key"],
    keypress: ["key"],
    keyboard: ["key"],
    fill: ["fill", "type"],
    input: ["type"],
    set_value: ["fill", "type"],
    write: ["type"],
    goto: ["navigate", "url"],
    open: ["navigate", "open_page"],
    visit: ["navigate"],
    mouseover: ["hover"],
    choose: ["select"],
    select_option: ["select"],
    go_back: ["back"],
    go_forward: ["forward"],
    refresh: ["reload"],
    new_tab: ["open_page"],
    close_tab: ["close_page"],
    set_input_files: ["upload"],
    css: ["selector"],
    element: ["selector", "ref"],
    target: ["selector", "ref"],
    href: ["url"],
    address: ["url"],
    value: ["text", "values"],
    timeout: ["timeout_ms", "timeout_seconds"],
    tab_id: ["page_id"],
    type: ["kind"],
    png: ["screenshot"],
    html: ["dom_snapshot"],
  }),
);

/** Maximum length of words to compare, because a comparison takes quadratic time. */
const longest = 32;

/** Returns `: did you mean \`tap\`?` for a likely correction, or an empty text. */
export function suggestion(word: string, known: Iterable<string>): string {
  if (word.length > longest) return "";
  const words = [...known];
  const wanted = word.replaceAll(/([a-z])(?=[A-Z])|[-\s]/g, "$1_").toLowerCase();
  const likely = words.includes(wanted)
    ? wanted
    : (synonyms.get(wanted)?.find((synonym) => words.includes(synonym)) ?? nearest(wanted, words));
  return likely === undefined ? "" : `: did you mean \`${likely}\`?`;
}

/** Returns the nearest word, with at most one difference per three letters, and at most two. */
function nearest(wanted: string, words: readonly string[]): string | undefined {
  let best: string | undefined;
  let min = Math.min(2, Math.floor(wanted.length / 3)) + 1;
  for (const word of words) {
    if (Math.abs(word.length - wanted.length) >= min) continue;
    const differs = distance(wanted, word);
    if (differs < min) [best, min] = [word, differs];
  }
  return best;
}

/** Returns the edit distance with transpositions. */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      let steps = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (isSame ? 0 : 1));
      if (from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) steps = Math.min(steps, (before[j - 2] ?? steps) + 1);
      next.push(steps);
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
