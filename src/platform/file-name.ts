/** The longest name of a file, in bytes of UTF-8: what file systems take. */
const longest = 255;

/** The longest ending that a name keeps when it is cut, in bytes. */
const longestEnding = 32;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const unfit = /[/\\\u0000-\u001f\u007f-\u009f]/g;

/** Says what is wrong with the name of a session's file; undefined when nothing is. */
export function fileNameFault(name: string): string | undefined {
  const length = Buffer.byteLength(name);
  if (length === 0 || length > longest) return `must have 1 to ${longest} bytes of UTF-8, and has ${length}`;
  if (name === "." || name === "..") return "must not be . or ..";
  return name.search(unfit) >= 0 ? "must not have a /, a \\ or a control character" : undefined;
}

/** Makes a name of a session's file of one that a page has chosen. */
export function cleanFileName(name: string): string {
  const clean = name.toWellFormed().replaceAll(unfit, "_");
  return ["", ".", ".."].includes(clean) ? "download" : assemble(clean, "");
}

/** Gives the first of `name`, `name (1)`, `name (2)` and so on, before the ending, that is not taken. */
export function freeFileName(name: string, isTaken: (name: string) => boolean): string {
  let free = name;
  for (let count = 1; isTaken(free); count += 1) free = assemble(name, ` (${count})`);
  return free;
}

/** Puts a mark before the ending of a name, and cuts what stands before the mark where the whole is too long. */
function assemble(name: string, mark: string): string {
  const dot = name.lastIndexOf(".");
  const isEnding = dot > 0 && Buffer.byteLength(name.slice(dot)) <= longestEnding;
  const tail = mark + (isEnding ? name.slice(dot) : "");
  const stem = Buffer.from(isEnding ? name.slice(0, dot) : name).subarray(0, longest - Buffer.byteLength(tail));
  // As a part of a stream, whose last character may not be whole yet.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(stem, { stream: true }) + tail;
}
