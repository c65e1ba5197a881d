import type { ReactNode } from "react";
import { classes } from "./classes.ts";

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

const screens = { sm: "hidden sm:table-cell", lg: "hidden lg:table-cell" };

export function Table<T>({ label, rows, columns, keyOf }: TableProps<T>) {
  const cellClass = ({ from, isRight }: Column<T>): string =>
    classes("px-4 py-2.5", from && screens[from], isRight === true && "text-right");
  return (
    <table className="w-full text-left text-sm" aria-label={label}>
      <thead>
        <tr className="border-b border-line text-xs text-faint">
          {columns.map((column) => (
            <th key={column.title} scope="col" className={classes(cellClass(column), "!py-2 font-medium")}>
              {column.title || <span className="sr-only">Actions</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} className="group border-b border-line last:border-0 hover:bg-hover">
            {columns.map((column) => (
              <td key={column.title} className={classes(cellClass(column), "align-middle")}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
