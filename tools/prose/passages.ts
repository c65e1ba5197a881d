/** Text of a file that people read. `text` keeps the line breaks of the file, without comment markers. */
export interface Passage {
  /** An item belongs to a list; a label is a heading or a table cell. */
  readonly kind: "comment" | "item" | "label" | "message" | "subject";
  readonly line: number;
  readonly text: string;
}

/** Calls whose arguments are messages. */
const messageCall = /(?:^|\.)(?:trace|debug|info|warn|error|fatal|log)$|(?:Error|Refused|Problem|stop)$/;
/** Properties and variables whose values are messages. */
const messageName = /\b(?:detail|failureMessage|message|msg|reason|about)\??\s*[:=]\s*$/;
/** Code after which a slash starts a regular expression and does not divide. */
const beforeRegex = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|of))\s*$/;

const tokens = {
  lineComment: /\/\/[^\n]*/y,
  blockComment: /\/\*[\s\S]*?\*\//y,
  string: /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y,
  regex: /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y,
  templateText: /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y,
};

/** Directives to tools, which are not prose. */
const directive = /^(?:biome-ignore|@ts-|@vitest|#region|#endregion|<reference|shellcheck|buf:lint|#!|clang-format)/;

function lineOf(source: string, at: number): number {
  return source.slice(0, at).split("\n").length;
}

/**
 * Splits a text into paragraphs, list items, headings and table cells. Fenced code is left out. A line that matches
 * `splitsAt` starts another paragraph.
 */
function readText(source: string, firstLine: number, splitsAt: RegExp): Passage[] {
  const found: Passage[] = [];
  let open: { kind: "comment" | "item"; line: number; lines: string[] } | undefined;
  let fence = false;

  function close(): void {
    const text = open?.lines.join("\n") ?? "";
    if (open && /[a-z]/i.test(text) && !directive.test(text)) found.push({ kind: open.kind, line: open.line, text });
    open = undefined;
  }

  for (const [index, raw] of source.split("\n").entries()) {
    const line = firstLine + index;
    const text = raw.trim();
    const starts = /^(?:[-*+] |\d+\. |> |@[a-z]+ )/.exec(text)?.[0] ?? "";
    if (text === "" || starts !== "" || splitsAt.test(raw) || /^(?:```|~~~|#+ |\||<)/.test(text)) close();
    if (/^(?:```|~~~)/.test(text)) fence = !fence;
    else if (fence || text === "" || /^(?:<|\|[-:| ]+$)/.test(text)) continue;
    else if (/^#+ /.test(text)) found.push({ kind: "label", line, text: text.replace(/^#+ /, "") });
    else if (text.startsWith("|")) {
      for (const cell of text.split("|").filter((each) => / /.test(each.trim()))) {
        found.push({ kind: "label", line, text: cell.trim() });
      }
    } else {
      open ??= { kind: starts === "" ? "comment" : "item", line, lines: [] };
      open.lines.push(text.slice(starts.length));
    }
  }
  close();
  return found;
}

/** Reads a Markdown file. */
export const readMarkdown = (source: string): Passage[] => readText(source, 1, /(?!)/);

/** Reads a comment. Indented lines do not continue the previous paragraph. */
const readComment = (source: string, firstLine: number): Passage[] => readText(source, firstLine, /^ {2,}/);

/** Reads the comments and messages of TypeScript, JavaScript and protobuf. */
export function readCode(source: string): Passage[] {
  const found: Passage[] = [];
  /** Open brackets with the callee before them; `${` for an expression in a template. */
  const brackets: { mark: string; callee: string }[] = [];
  const templates: { start: number; text: string; isMessage: boolean }[] = [];
  const lineComments: { line: number; text: string; joins: boolean }[] = [];
  let [at, code, closedCallee] = [0, "", ""];

  function take(token: RegExp): string {
    token.lastIndex = at;
    const [text = ""] = token.exec(source) ?? [];
    at += text.length;
    return text;
  }

  function isMessage(): boolean {
    const tail = code.slice(-100);
    const bracket = brackets.at(-1);
    return messageName.test(tail) || (bracket?.mark === "(" && messageCall.test(bracket.callee));
  }

  function addMessage(start: number, text: string): void {
    if (/[a-z] /i.test(text)) found.push({ kind: "message", line: lineOf(source, start), text });
  }

  function endTemplatePart(): void {
    const template = templates.at(-1);
    if (!template) return;
    template.text += take(tokens.templateText);
    if (source.startsWith("${", at)) {
      at += 2;
      brackets.push({ mark: "${", callee: "" });
      template.text += "…";
      return;
    }
    at += 1;
    templates.pop();
    code += '""';
    if (template.isMessage) addMessage(template.start, template.text);
    for (const [sql, comment = ""] of template.text.matchAll(/^\s*-- (.*)$/gm)) {
      found.push({ kind: "comment", line: lineOf(source, template.start + template.text.indexOf(sql)), text: comment });
    }
  }

  while (at < source.length) {
    const start = at;
    const mark = source[at] ?? "";
    const isOwnLine = /(?:^|\n)[ \t]*$/.test(source.slice(Math.max(0, at - 60), at));
    const lineComment = take(tokens.lineComment);
    const blockComment = lineComment ? "" : take(tokens.blockComment);
    if (lineComment) {
      const line = lineOf(source, start);
      const text = lineComment.replace(/^\/\/+ ?/, "");
      const last = lineComments.at(-1);
      if (isOwnLine && last?.joins && last.line + last.text.split("\n").length === line) last.text += `\n${text}`;
      else lineComments.push({ line, text, joins: isOwnLine });
    } else if (blockComment) {
      const text = blockComment
        .slice(2, -2)
        .replace(/^\*/, "")
        .replace(/^[ \t]*\* ?/gm, "");
      found.push(...readComment(text, lineOf(source, start)));
    } else if (/["']/.test(mark)) {
      const text = take(tokens.string);
      if (isMessage()) addMessage(start, text.slice(1, -1));
      code += '""';
      at = Math.max(at, start + 1);
    } else if (mark === "`") {
      templates.push({ start, text: "", isMessage: isMessage() });
      at += 1;
      endTemplatePart();
    } else if (mark === "/" && beforeRegex.test(code.slice(-40)) && take(tokens.regex)) {
      code += "0";
    } else {
      at += 1;
      code += mark;
      if (/[([{]/.test(mark)) {
        const before = code.slice(-81, -1);
        brackets.push({ mark, callee: /\)\s*$/.test(before) ? closedCallee : (/[\w.$]+$/.exec(before)?.[0] ?? "") });
      } else if (/[)\]}]/.test(mark)) {
        const opened = brackets.pop();
        closedCallee = opened?.callee ?? "";
        if (opened?.mark === "${") endTemplatePart();
      }
    }
  }
  found.push(...lineComments.flatMap(({ line, text }) => readComment(text, line)));
  return found;
}

/** Reads the comments of a shell script, and the texts that it prints. */
export function readShell(source: string): Passage[] {
  const found: Passage[] = [];
  const comments = source.split("\n").map((line) => /^\s*#(?!!) ?(.*)$/.exec(line)?.[1] ?? "");
  found.push(...readComment(comments.join("\n"), 1));
  for (const printed of source.matchAll(/\b(?:stop|echo|printf|fail|warn) +(["'])(.*?[a-z] [a-z].*?)\1/g)) {
    found.push({ kind: "message", line: lineOf(source, printed.index), text: printed[2] ?? "" });
  }
  return found;
}

/** Returns the reader of a file by its name; `undefined` for files without prose. */
export function readerOf(path: string): ((source: string) => Passage[]) | undefined {
  if (/\.(?:ts|mjs|js|proto)$/.test(path)) return readCode;
  if (path.endsWith(".sh")) return readShell;
  return path.endsWith(".md") ? readMarkdown : undefined;
}
