// The part of page-script.ts that waits for a document and serializes it. A worker that needs no more loads only this.

export { forgetDocument, frameHolder, readDocument } from "./page-dom.ts";
export { quiet } from "./page-wait.ts";
