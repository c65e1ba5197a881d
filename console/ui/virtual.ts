import { useVirtualizer, useWindowVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { type RefObject, useLayoutEffect, useState } from "react";

/** Maximum rows of a list that has all rows in the document, so that the browser can find and print them. */
const shortList = 100;

/** Rows in the document beyond each edge of the screen, in a long list. */
const overscan = 20;

interface VirtualRows {
  /** Indexes of the rows in the document. */
  readonly indexes: readonly number[];
  /** Heights in pixels of the rows before and after them. */
  readonly before: number;
  readonly after: number;
  /** Measures a row, which has the attribute `data-index`. */
  readonly measure: ((row: Element | null) => void) | undefined;
}

/**
 * Returns which rows of a list are in the document: all rows of a short list, or the rows near the screen of a long
 * list.
 */
export function useVirtualRows<R>(
  list: RefObject<HTMLElement | null>,
  rows: readonly R[],
  keyOf: (row: R) => string,
  rowHeight: number,
): VirtualRows {
  const [top, setTop] = useState(0);
  const options = optionsOf(rows, keyOf, rowHeight);
  useLayoutEffect(() => {
    if (options.enabled && list.current) setTop(list.current.getBoundingClientRect().top + scrollY);
  }, [options.enabled, list]);
  return virtualRowsOf(useWindowVirtualizer({ ...options, scrollMargin: top }));
}

/** Like `useVirtualRows`, for a list in a box that scrolls. */
export function useVirtualRowsIn<R>(
  box: RefObject<HTMLElement | null>,
  rows: readonly R[],
  keyOf: (row: R) => string,
  rowHeight: number,
): VirtualRows {
  return virtualRowsOf(useVirtualizer({ ...optionsOf(rows, keyOf, rowHeight), getScrollElement: () => box.current }));
}

function optionsOf<R>(rows: readonly R[], keyOf: (row: R) => string, rowHeight: number) {
  return {
    count: rows.length,
    enabled: rows.length > shortList,
    estimateSize: () => rowHeight,
    // New rows may come first; heights that were measured stay with their rows.
    getItemKey: (index: number) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
    overscan,
  };
}

function virtualRowsOf<E extends Element | Window>(virtualizer: Virtualizer<E, Element>): VirtualRows {
  const { count, enabled, scrollMargin: top } = virtualizer.options;
  if (!enabled)
    return { indexes: Array.from({ length: count }, (_, index) => index), before: 0, after: 0, measure: undefined };
  const items = virtualizer.getVirtualItems();
  return {
    indexes: items.map(({ index }) => index),
    before: Math.max(0, (items[0]?.start ?? top) - top),
    after: Math.max(0, virtualizer.getTotalSize() - ((items.at(-1)?.end ?? top) - top)),
    measure: virtualizer.measureElement,
  };
}
