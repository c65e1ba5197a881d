// The part of page-script.ts that waits for a document and serializes it. Smaller, so it loads faster.

export { forgetDocument, frameHolder, readDocument } from "./page-dom.ts";
export { quiet } from "./page-wait.ts";
