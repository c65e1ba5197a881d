import { type ReactNode, useRef } from "react";
import { classes } from "./classes.ts";
import { useVirtualRows } from "./virtual.ts";

export interface Column<T> {
  /** Empty for a column of buttons. */
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** Narrowest screen that shows the column. Default: every screen. */
  readonly from?: "sm" | "lg";
  readonly isRight?: boolean;
}

interface TableProps<T> {
  /** Accessible name of the table. */
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
}

/** Height of a row with one line, in pixels. */
const rowHeight = 41;

const screens = { sm: "hidden sm:table-cell", lg: "hidden lg:table-cell" };

export function Table<T>({ label, rows, columns, keyOf }: TableProps<T>) {
  const cellClass = ({ from, isRight }: Column<T>): string =>
    classes("px-4 py-2.5", from && screens[from], isRight === true && "text-right");
  const body = useRef<HTMLTableSectionElement>(null);
  const { indexes, before, after, measure } = useVirtualRows(body, rows, keyOf, rowHeight);
  const gap = (height: number) =>
    height > 0 && (
      <tr>
        <td colSpan={columns.length} style={{ height }} />
      </tr>
    );
  return (
    <table className="w-full text-left text-sm" aria-label={label} aria-rowcount={rows.length + 1}>
      <thead>
        <tr className="border-b border-line text-xs text-faint">
          {columns.map((column) => (
            <th key={column.title} scope="col" className={classes(cellClass(column), "!py-2 font-medium")}>
              {column.title || <span className="sr-only">Actions</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        {gap(before)}
        {indexes.map((index) => {
          const row = rows[index];
          return (
            row !== undefined && (
              <tr
                key={keyOf(row)}
                ref={measure}
                data-index={index}
                aria-rowindex={index + 2}
                className="group border-b border-line last:border-0 hover:bg-hover"
              >
                {columns.map((column) => (
                  <td key={column.title} className={classes(cellClass(column), "align-middle")}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            )
          );
        })}
        {gap(after)}
      </tbody>
    </table>
  );
}
