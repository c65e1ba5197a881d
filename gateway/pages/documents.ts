import type { ServedService } from "../../src/kernel/registry.ts";
import type { Config } from "../../src/platform/config.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { loadComments } from "../openapi/comments.ts";
import { buildOpenApi } from "../openapi/document.ts";
import { renderDocs } from "./docs-page.ts";

export interface Documents {
  readonly openApiJson: string;
  readonly docsHtml: string;
}

/** Builds the documents of services. Takes most of a second. */
export async function makeDocuments(services: readonly ServedService[], config: Config): Promise<Documents> {
  const { publicUrl, errorsBase } = config;
  const document = buildOpenApi(services, {
    publicUrl,
    errorsBase,
    version: releaseVersion,
    comments: await loadComments(),
  });
  return { openApiJson: `${JSON.stringify(document)}\n`, docsHtml: renderDocs(document) };
}
