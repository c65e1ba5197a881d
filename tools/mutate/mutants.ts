import { findDurations, parseSource, type SourceRange, sqlIntervals, textOf } from "./source.ts";

/** A small change of a source. */
export interface Mutant {
  readonly kind: "where" | "and" | "if" | "duration";
  readonly line: number;
  /** Description of the change, in one line. */
  readonly change: string;
  /** The source with the change. */
  readonly source: string;
}

interface Edit extends SourceRange {
  readonly kind: Mutant["kind"];
  readonly change: string;
  readonly text: string;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").slice(0, 100);

/** An SQL condition that lies in one piece of the template. */
const sqlCondition = /\b(and\s+)([\w.$]+ (?:=|<>) (?:[\w.$]+|any\([\w$]+\)))(?=\s|\)|$)/g;

function* editsOf(source: Buffer): Generator<Edit> {
  for (const node of parseSource(source.toString()).all) {
    const callee = node.child("callee");
    const object = callee?.child("object");
    if (node.type === "CallExpression" && object && callee?.child("property")?.value === "where") {
      const range = { start: object.end, end: node.end };
      yield { ...range, kind: "where", change: `without ${textOf(source, range)}`, text: "" };
    }
    const test = node.type === "IfStatement" && node.child("test");
    if (test) {
      const condition = textOf(source, test);
      yield { start: test.start, end: test.end, kind: "if", change: `not (${condition})`, text: `!(${condition})` };
    }
    if (node.type === "TemplateElement") yield* editsOfSql(textOf(source, node), node.start);
  }
  for (const { name, value, start, end } of findDurations(source.toString())) {
    if (name === "sql" || !/^[\d_]|^\w+$/.test(value)) continue;
    for (const factor of [10, 0.1])
      yield { start, end, kind: "duration", change: `${name} x ${factor}`, text: `((${value}) * ${factor})` };
  }
}

/** Yields the changes of an SQL text. `from` is the byte at which the text starts in the source. */
function* editsOfSql(sql: string, from: number): Generator<Edit> {
  const rangeOf = (index: number, length: number) => {
    const start = from + Buffer.byteLength(sql.slice(0, index));
    return { start, end: start + Buffer.byteLength(sql.slice(index, index + length)) };
  };
  for (const { 0: all, 1: and = "", 2: condition, index } of sql.matchAll(sqlCondition)) {
    // Keeps the condition, because PostgreSQL infers the types of parameters from it.
    const text = `${and}(${condition} or true)`;
    yield { ...rangeOf(index, all.length), kind: "and", change: `without ${all}`, text };
  }
  for (const { 0: all, 1: count, 2: unit, index } of sql.matchAll(sqlIntervals))
    for (const factor of [10, 0.1]) {
      const text = `interval '${Number(count) * factor} ${unit}'`;
      yield { ...rangeOf(index, all.length), kind: "duration", change: `${all} x ${factor}`, text };
    }
}

/**
 * Creates the mutants of a source. Each drops a `where` of a query or an `and` of an SQL text, negates an `if`, or
 * multiplies a duration by 10 or 0.1.
 */
export function makeMutants(text: string): Mutant[] {
  const source = Buffer.from(text);
  return [...editsOf(source)]
    .sort((a, b) => a.start - b.start)
    .map(({ start, end, kind, change, text: changed }) => ({
      kind,
      line: source.subarray(0, start).toString().split("\n").length,
      change: oneLine(change),
      source: Buffer.concat([source.subarray(0, start), Buffer.from(changed), source.subarray(end)]).toString(),
    }));
}
