import { parseSync } from "@swc/core";

/** A byte range of a source; `end` is exclusive. */
export interface SourceRange {
  readonly start: number;
  readonly end: number;
}

/** A constant with a duration. The name of a nested property is its path: `times.look.first`. */
export interface DurationConstant extends SourceRange {
  readonly name: string;
  /** Initializer expression. */
  readonly value: string;
}

/** A node of the syntax tree. */
export interface SyntaxNode extends SourceRange {
  readonly type: string;
  /** Returns a child by the name of its property in swc. */
  child(name: string): SyntaxNode | undefined;
  /** Returns the children of a list property; [] if there is no list. */
  children(name: string): readonly SyntaxNode[];
  /** Returns the text value of a node, such as the name of an identifier. */
  readonly value: string;
}

function toNode(from: unknown): SyntaxNode | undefined {
  if (typeof from !== "object" || from === null) return undefined;
  const read = (name: string): unknown => Reflect.get(from, name);
  const type = read("type");
  if (typeof type !== "string") return undefined;
  // Properties have no span.
  const { start, end } = (read("span") ?? { start: 1, end: 1 }) as SourceRange;
  const listed = (name: string): unknown[] => [read(name)].flat();
  return {
    type,
    // swc counts bytes from 1.
    start: start - 1,
    end: end - 1,
    value: String(read("value") ?? ""),
    child: (name) => toNode(read(name)),
    children: (name) => listed(name).flatMap((each) => toNode(each) ?? []),
  };
}

/** Parses a TypeScript source. Returns its top-level statements and all its nodes. */
export function parseSource(text: string): { readonly body: readonly SyntaxNode[]; readonly all: SyntaxNode[] } {
  const module = parseSync(text, { syntax: "typescript" });
  const all: SyntaxNode[] = [];
  const walk = (from: unknown): void => {
    if (typeof from !== "object" || from === null) return;
    const node = toNode(from);
    if (node) all.push(node);
    for (const each of Object.values(from)) walk(each);
  };
  walk(module.body);
  return { body: module.body.flatMap((each) => toNode(each) ?? []), all };
}

/** Returns the text of a range. */
export const textOf = (source: Buffer, { start, end }: SourceRange): string => source.subarray(start, end).toString();

const namesDuration = (name: string): boolean => /(Ms|For|Every)$/.test(name);

/** Unwraps `as const` and `satisfies`. */
function bare(node: SyntaxNode | undefined): SyntaxNode | undefined {
  return node && /^Ts(Const|As|Satisfies)/.test(node.type) ? bare(node.child("expression")) : node;
}

/**
 * Returns the duration constants of a module: constants whose names end in `Ms`, `For` or `Every`, and members of
 * objects called `times` or `lifetimes`.
 */
export function findDurations(text: string): DurationConstant[] {
  const source = Buffer.from(text);
  const found: DurationConstant[] = [];

  function read(name: string, given: SyntaxNode | undefined, counts: boolean): void {
    const node = bare(given);
    if (!node || /Arrow|Function/.test(node.type)) return;
    if (node.type === "ObjectExpression") {
      for (const property of node.children("properties")) readProperty(name, property, counts);
    } else if (counts) {
      found.push({ name, value: textOf(source, node).replace(/\s+/g, " "), start: node.start, end: node.end });
    }
  }

  function readProperty(owner: string, property: SyntaxNode, counts: boolean): void {
    if (property.type !== "KeyValueProperty") return;
    const key = property.child("key")?.value ?? "";
    read(`${owner}.${key}`, property.child("value"), counts || namesDuration(key));
  }

  for (const statement of parseSource(text).body) {
    const declaration = statement.type === "ExportDeclaration" ? statement.child("declaration") : statement;
    for (const { child } of declaration?.children("declarations") ?? []) {
      const name = child("id")?.value ?? "";
      read(name, child("init"), namesDuration(name) || /^(life)?times$/.test(name));
    }
  }
  return found;
}
