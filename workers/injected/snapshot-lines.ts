import type { Clip } from "./page-clip.ts";
import { type Kept, numberOf, type Ref, recordLine } from "./page-refs.ts";
import { longestName } from "./page-role.ts";
import * as visibility from "./page-visibility.ts";
import { hasQuotedText, tidy, withoutLookahead } from "./plain-text.ts";

/* Lines of a snapshot. If a container begins with a text, the text is part of the container's line. */

/**
 * An element with contents that are indented below its line. The line of an element with neither contents nor text is
 * left out.
 */
interface Container {
  readonly element: Element;
  /** Role and name. */
  readonly head: string;
  /** Reference and state. */
  readonly tail: string;
  /** Whether the line is left out if the container holds a single line. */
  readonly isSlight: boolean;
  /** Text before all other contents. */
  text: string;
  /** Index of the container's line once written. */
  line: number | undefined;
}

/** An actionable match of a search, with its description. */
export interface Found {
  readonly element: Element;
  readonly description: string;
}

/** A frame found by a snapshot. */
export interface NestedFrame {
  readonly ref: Ref;
  /** Index of the frame's line. */
  readonly line: number;
  /** Indentation of the frame's contents. */
  readonly indent: number;
  /** Visible part of the frame's viewport. */
  readonly clip: Clip | null;
  /** Upper left corner of the frame's viewport in the page's viewport. */
  readonly origin: visibility.ViewportPoint;
}

/** Lines written so far, and the state for the next line. */
export interface Lines {
  readonly kept: Kept;
  /** Text that each line must contain. Empty for all lines. */
  readonly find: string;
  readonly lines: string[];
  readonly written: Set<Node>;
  readonly around: Container[];
  /** Index of the last line of a frame. */
  frameLine: number;
  text: string;
  /** Characters of the text that were not collected. */
  textMore: number;
  textNode: Node | undefined;
  room: number;
  isCut: boolean;
}

export function openContainer(walk: Lines, container: Pick<Container, "element" | "head" | "tail" | "isSlight">): void {
  walk.around.push({ ...container, text: "", line: undefined });
}

/** Closes all containers but the outermost `depth`. */
export function closeContainers(walk: Lines, depth: number): void {
  while (walk.around.length > depth) {
    const last = walk.around.at(-1);
    if (last && last.line === undefined && last.text !== "") writeContainers(walk);
    if (last) leaveOut(walk, last);
    walk.around.pop();
  }
}

/**
 * Removes the line of a slight container that has no text, reference or state and only one line of contents. Keeps it
 * if the container's line is new or the only line is a frame's.
 */
function leaveOut(walk: Lines, { isSlight, line, text, tail }: Container): void {
  if (!isSlight || line === undefined || text !== "" || tail !== "" || walk.lines.length !== line + 2) return;
  const only = walk.lines.at(-1) ?? "";
  if (walk.frameLine > line || walk.lines[line]?.trimStart().startsWith("*")) return;
  walk.lines.splice(line, 2, walk.around.length <= 12 ? only.slice(2) : only);
}

export function addText(walk: Lines, node: Text): void {
  const data = visibility.read(CharacterData.prototype, "data", node);
  if (walk.text.length > 2 * longestName) walk.textMore += tidy(data, 100_000).length;
  else walk.text += data.slice(0, 40_000);
  walk.textNode ??= node;
}

/**
 * Adds the collected text: to its container's line if the text is short and first in a container without a name, else
 * as its own line.
 */
export function endText(walk: Lines): void {
  const { text, textNode, textMore } = walk;
  walk.text = "";
  walk.textMore = 0;
  walk.textNode = undefined;
  const whole = textNode ? tidy(text, 100_000) : "";
  if (!textNode || whole === "" || walk.written.has(textNode)) return;
  const shown = tidy(whole, longestName);
  const more = whole.length - Math.min(whole.length, longestName) + textMore;
  const around = walk.around.at(-1);
  if (around && more === 0 && around.line === undefined && around.text === "" && !around.head.includes('"')) {
    around.text = shown;
    walk.written.add(textNode);
    return;
  }
  const element = visibility.parentOf(textNode);
  const isLong = more > 0 && element !== undefined && walk.find === "";
  const ref = isLong ? ` ref=s${walk.kept.epoch}e${numberOf(walk.kept, element, "")} (+${more} characters)` : "";
  addLine(walk, textNode, `text ${JSON.stringify(shown)}${ref}`);
}

/** Adds a line, preceded by the lines of its containers. Returns false if the line was skipped or did not fit. */
export function addLine(walk: Lines, node: Node, body: string, isFrame = false): boolean {
  if (walk.written.has(node) || walk.isCut) return false;
  if (!isFrame && walk.find !== "" && !hasQuotedText(body, walk.find)) return false;
  walk.written.add(node);
  writeContainers(walk);
  if (isFrame) walk.frameLine = walk.lines.length;
  return writeLine(walk, node, body, walk.around.length);
}

/** Writes the lines of those open containers that have no line yet. */
export function writeContainers(walk: Lines): void {
  for (const [indent, around] of walk.around.entries()) {
    if (around.line !== undefined) continue;
    around.line = walk.lines.length;
    const text = around.text === "" ? "" : ` ${JSON.stringify(around.text)}`;
    writeLine(walk, around.element, `${around.head}${text}${around.tail}`, indent);
  }
}

let encoder: TextEncoder | undefined;

function byteLength(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  encoder ??= new TextEncoder();
  return encoder.encode(text).length;
}

function writeLine(walk: Lines, node: Node, body: string, indent: number): boolean {
  // Search results are never marked as new.
  const isNew = walk.find === "" && recordLine(walk.kept, node, body);
  const mark = isNew ? "*" : "-";
  const line = `${"  ".repeat(Math.min(indent, 12))}${mark} ${body}`;
  walk.room -= byteLength(withoutLookahead(line)) + 1;
  if (walk.room < 0) walk.isCut = true;
  else walk.lines.push(line);
  return !walk.isCut;
}
