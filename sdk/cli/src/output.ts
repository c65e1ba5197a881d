/** Output of a command. */
export interface Output {
  /** Whether results are JSON: with `--json`, or if the output is not a terminal. */
  readonly isJson: boolean;
  /** Writes a result: a line of JSON, or the text for people. */
  result(value: unknown, text: string): void;
  /** Writes a list: a line of JSON for each item, or a table for people. For an empty list, people see `none`. */
  table(items: readonly object[], columns: readonly string[], none: string): void;
  /** Writes text or bytes as they are. */
  raw(content: string | Uint8Array): Promise<void>;
  /** Writes a line for people to standard error. */
  progress(line: string): void;
}

/** Streams to write to, such as those of the process. */
export interface Streams {
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
}

/** Creates the output of a run. */
export function createOutput({ stdout, stderr }: Streams, isJson: boolean): Output {
  const progress = (line: string) => void stderr.write(`${withoutControl(line)}\n`);
  const json = (value: unknown) => void stdout.write(`${JSON.stringify(value)}\n`);
  return {
    isJson,
    result: (value, text) => (isJson ? json(value) : void stdout.write(`${withoutControl(text)}\n`)),
    table(items, columns, none) {
      if (isJson) for (const item of items) json(item);
      else if (items.length === 0) progress(none);
      else stdout.write(formatTable(items, columns));
    },
    raw(content) {
      const shown = stdout.isTTY && typeof content === "string" ? withoutControl(content) : content;
      return new Promise((resolve, reject) => stdout.write(shown, (error) => (error ? reject(error) : resolve())));
    },
    progress,
  };
}

/**
 * Replaces characters that move the cursor or change a terminal, because titles, names and texts come from web pages.
 */
const withoutControl = (text: string): string => text.replaceAll(/[^\P{Cc}\n\t]/gu, " ");

/** Replaces line breaks, too, for text within a line. */
export const oneLine = (text: string): string => text.replaceAll(/\p{Cc}/gu, " ");

/** Maximum characters of a cell. Keys may have 18 scopes. */
const maxCell = 60;

function formatTable(items: readonly object[], columns: readonly string[]): string {
  const cells = items.map((item) => columns.map((column) => cellOf(Object.entries(item), column)));
  const rows = [columns.map((column) => column.replaceAll("_", " ").toUpperCase()), ...cells];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

function cellOf(fields: readonly [string, unknown][], column: string): string {
  const [, value] = fields.find(([name]) => name === column) ?? [];
  if (value === undefined || value === null) return "-";
  const text = oneLine(Array.isArray(value) ? value.join(",") : String(value));
  return text.length > maxCell ? `${text.slice(0, maxCell - 1)}…` : text;
}
