// All functions that a worker calls in the isolated world of a document.

export { numberFound, takeSnapshot } from "./document-snapshot.ts";
export {
  aim,
  aimThrough,
  findFileInput,
  findFrame,
  firstInvalid,
  outerBox,
  restoreOffsets,
  reveal,
  saveOffsets,
  show,
  viewportSize,
} from "./page-aim.ts";
export { checkState, waitForCheckChange } from "./page-check.ts";
export { documentContent } from "./page-content.ts";
export {
  forgetDocument,
  forgetDocument as forgetContent,
  forgetDocument as forgetElement,
  frameHolder,
  frameHolder as contentHolder,
  frameHolder as elementHolder,
  readDocument,
} from "./page-dom.ts";
export { coverFields, uncoverFields } from "./page-fields.ts";
export { focusElement, focusedElement, insertSecretText, insertText, originHere } from "./page-focus.ts";
export { release } from "./page-guard.ts";
export { doubtfulElements, doubtfulElements as doubtfulOfContent } from "./page-hosts.ts";
export { listenersRoot, registerListening } from "./page-items.ts";
export { drawMarks, markedBoxes } from "./page-marks.ts";
export { elementContent, readElementText, readPageHead } from "./page-reading.ts";
export { receiveText } from "./page-receive.ts";
export { elementOf } from "./page-refs.ts";
export { scrollElement, scrolled, settled } from "./page-scroll.ts";
export { chooseLabels, chooseOptions } from "./page-select.ts";
export { hitAt, keepClosed, keepClosed as keepClosedOfContent, title } from "./page-visibility.ts";
export { quiet, viewState, waitForElement, waitForText } from "./page-wait.ts";
