// The functions of page-script.ts that read a document for its conversion to Markdown. This script is smaller, so it
// loads faster.

export { documentContent } from "./page-content.ts";
export { forgetDocument as forgetContent, frameHolder as contentHolder } from "./page-dom.ts";
export { doubtfulElements as doubtfulOfContent } from "./page-hosts.ts";
export { keepClosed as keepClosedOfContent } from "./page-visibility.ts";
