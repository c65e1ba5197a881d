/** What is said, by the wire or by the browser, to commands of a target that has closed; the browser itself goes on. */
const closed = /Target closed|Session with given id not found/;

/** What is said to commands of a document that has given way to another. */
const left =
  /navigated or closed|Cannot find context|context was destroyed|No frame (?:for|with) given id|Cannot find execution/;

/** Whether a command has failed because its target has closed. */
export function isTargetClosed(thrown: unknown): boolean {
  return thrown instanceof Error && closed.test(thrown.message);
}

/** Whether a command has failed because the document that it concerned was left. */
export function isDocumentLeft(thrown: unknown): boolean {
  return thrown instanceof Error && left.test(thrown.message);
}
