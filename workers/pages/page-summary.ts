import { create } from "@bufbuild/protobuf";
import { type PageSummary, PageSummarySchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { PageRegistry } from "./page-registry.ts";

/** Describes all pages, oldest first. Waits at most half a second for titles. */
export function summarizePages(pages: PageRegistry, hasTitles = true): Promise<PageSummary[]> {
  const { shown } = pages;
  return Promise.all(
    pages.all.map(async (page) => {
      const { id, isCrashed: crashed } = page;
      const title = crashed || !hasTitles ? "" : await page.title();
      return create(PageSummarySchema, { id, url: page.address, title, active: page === shown, crashed });
    }),
  );
}
