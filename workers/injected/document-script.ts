// The functions of page-script.ts that wait for a document and serialize the document. This script is smaller, so it
// loads faster.

export { forgetDocument, frameHolder, readDocument } from "./page-dom.ts";
export { quiet } from "./page-wait.ts";
