import type { ReactNode } from "react";
import type { ListResult } from "../api/lists.ts";
import { problemOf } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { ErrorState, Loading } from "./state.tsx";
import { type Column, Table } from "./table.tsx";

interface ListProps<R> {
  readonly list: ListResult<R>;
  readonly label: string;
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
  /** Shown without rows. */
  readonly empty: ReactNode;
}

/** Rows of a list method in all states. */
export function List<R>({ list, label, columns, keyOf, empty }: ListProps<R>) {
  const { data, error, refetch, hasMore, isLoadingMore, loadMore } = list;
  if (!data) return error ? <ErrorState problem={problemOf(error)} retry={() => refetch()} /> : <Loading lines={6} />;
  if (data.length === 0) return empty;
  return (
    <>
      <Table label={label} rows={data} columns={columns} keyOf={keyOf} />
      {hasMore && (
        <div className="flex justify-center border-t border-line p-3">
          <Button isPending={isLoadingMore} onClick={loadMore}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}
