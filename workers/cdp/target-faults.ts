/** Errors of commands to a closed target, created here or by the browser. The browser itself is still running. */
const closed = /Target closed|Session with given id not found/;

/** Errors of commands to a replaced document. */
const replaced =
  /navigated or closed|Cannot find context|context was destroyed|No frame (?:for|with) given id|Cannot find execution/;

/** Returns whether a command failed because its target has closed. */
export function isTargetClosed(thrown: unknown): boolean {
  return thrown instanceof Error && closed.test(thrown.message);
}

/** Returns whether a command failed because its document was replaced. */
export function isDocumentReplaced(thrown: unknown): boolean {
  return thrown instanceof Error && replaced.test(thrown.message);
}
