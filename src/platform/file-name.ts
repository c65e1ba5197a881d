/** Maximum length of file names in bytes of UTF-8, as in most file systems. */
const longest = 255;

/** Maximum length of a preserved extension in bytes. */
const longestEnding = 32;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const unfit = /[/\\\u0000-\u001f\u007f-\u009f]/g;

/** Returns why a name is not valid for a session file, or undefined if the name is valid. */
export function fileNameFault(name: string): string | undefined {
  const length = Buffer.byteLength(name);
  if (length === 0 || length > longest) return `must have 1 to ${longest} bytes of UTF-8, and has ${length}`;
  if (name === "." || name === "..") return "must not be . or ..";
  return name.search(unfit) >= 0 ? "must not have a /, a \\ or a control character" : undefined;
}

/** Converts a name chosen by a page to a valid file name. */
export function cleanFileName(name: string): string {
  const clean = name.toWellFormed().replaceAll(unfit, "_");
  return ["", ".", ".."].includes(clean) ? "download" : assemble(clean, "");
}

/** Returns the first name among `name`, `name (1)`, `name (2)` and so on that is not taken. */
export function freeFileName(name: string, isTaken: (name: string) => boolean): string {
  let free = name;
  for (let count = 1; isTaken(free); count += 1) free = assemble(name, ` (${count})`);
  return free;
}

/** Inserts a mark before the extension, and truncates the stem if necessary. */
function assemble(name: string, mark: string): string {
  const dot = name.lastIndexOf(".");
  const isEnding = dot > 0 && Buffer.byteLength(name.slice(dot)) <= longestEnding;
  const tail = mark + (isEnding ? name.slice(dot) : "");
  const stem = Buffer.from(isEnding ? name.slice(0, dot) : name).subarray(0, longest - Buffer.byteLength(tail));
  // Decodes as a stream to drop an incomplete last character.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(stem, { stream: true }) + tail;
}
