import type { Choice, PageQuestion, QuestionAnswer } from "./messages.ts";
import type { Transfers } from "./transfers.ts";
import { clientName, find, hasControl, type Shown } from "./view.ts";

/** Heading and buttons of a question. The button `no`, if present, is on the left. */
interface Wording {
  readonly heading: string;
  readonly yes: string;
  readonly no?: string;
}

const wordings: Readonly<Record<string, Wording>> = {
  alert: { heading: "says:", yes: "OK" },
  confirm: { heading: "asks:", yes: "OK", no: "Cancel" },
  prompt: { heading: "asks:", yes: "OK", no: "Cancel" },
  beforeunload: { heading: "is being left. What was entered may be lost.", yes: "Leave", no: "Stay" },
  select: { heading: "offers a choice.", yes: "Choose", no: "Cancel" },
  file_chooser: { heading: "asks you for a file.", yes: "Choose a file", no: "Cancel" },
};

const multipleFiles: Wording = { heading: "asks you for files.", yes: "Choose files", no: "Cancel" };

const wordingOf = ({ kind, multiple }: PageQuestion): Wording | undefined =>
  kind === "file_chooser" && multiple ? multipleFiles : wordings[kind];

function messageOf({ kind, message = "", accept = "" }: PageQuestion): string {
  if (kind === "file_chooser") return accept && `Accepted types: ${accept}.`;
  return kind === "beforeunload" ? "" : message;
}

function optionOf({ index = 0, label = "", disabled = false, selected = false }: Choice): HTMLOptionElement {
  const made = new Option(label, String(index), selected, selected);
  made.disabled = disabled;
  return made;
}

/** Returns options in their groups, in order. */
function listOf(options: readonly Choice[]): HTMLElement[] {
  const made: HTMLElement[] = [];
  let group: HTMLOptGroupElement | undefined;
  for (const option of options) {
    const name = option.group ?? "";
    if (name === "") group = undefined;
    else if (group?.label !== name) {
      group = Object.assign(document.createElement("optgroup"), { label: name });
      made.push(group);
    }
    if (group) group.append(optionOf(option));
    else made.push(optionOf(option));
  }
  return made;
}

export interface QuestionParts {
  answer(answer: QuestionAnswer): void;
  readonly uploadFile: Transfers["upload"];
  /** Shows the person an error. */
  showMessage(why: string): void;
  /** Returns the keyboard focus to the picture. */
  focusPicture(): void;
  /**
   * Returns where the viewer last pressed the picture, in the viewport. Undefined before the first press, and if a key
   * was pressed since.
   */
  lastPress(): Pick<DOMRect, "x" | "y"> | undefined;
}

/** Pixels between a panel and the pressed point, and between the panel and the edges of the window. */
const gap = 12;

/**
 * Moves the panel below a point, or above the point if there is no room below. Without a point, the panel has its usual
 * position.
 */
function movePanel(panel: HTMLElement, point: Pick<DOMRect, "x" | "y"> | undefined): void {
  panel.toggleAttribute("data-at-field", point !== undefined);
  if (!point) return;
  const { width, height } = panel.getBoundingClientRect();
  const below = point.y + gap;
  const top = below + height + gap > innerHeight ? point.y - gap - height : below;
  panel.style.left = `${Math.max(gap, Math.min(point.x - gap, innerWidth - width - gap))}px`;
  panel.style.top = `${Math.max(gap, top)}px`;
}

/**
 * Creates the panel that shows one question at a time, those of the active page first, and sends the answers of the
 * person in control. Returns a function that updates the panel.
 */
export function createQuestionPanel({ answer, uploadFile, showMessage, focusPicture, lastPress }: QuestionParts) {
  const panel = find("question", HTMLFormElement);
  const message = find("question-message", HTMLElement);
  const field = find("question-text", HTMLInputElement);
  const list = find("question-option", HTMLSelectElement);
  const files = find("question-files", HTMLInputElement);
  const yes = find("question-yes", HTMLButtonElement);
  const no = find("question-no", HTMLButtonElement);
  let shown: PageQuestion | undefined;
  /**
   * Id of the last answered question. The panel hides the question, although the service lists it until the answer is
   * handled.
   */
  let answered: string | undefined;
  let latest: Shown | undefined;
  /** Aborts the current upload. */
  let sending: AbortController | undefined;

  function reply(given: QuestionAnswer): void {
    answer(given);
    answered = given.question_id;
    if (latest) show(latest);
  }

  function enteredFor({ kind }: PageQuestion): Pick<QuestionAnswer, "text" | "option"> {
    if (kind === "select") return { option: Number(list.value) };
    return kind === "prompt" ? { text: field.value } : {};
  }

  function respond(accept: boolean): void {
    if (!shown) return;
    if (shown.kind === "file_chooser" && accept) files.click();
    else if (shown.kind === "select" && accept && list.value === "") list.focus();
    else reply({ question_id: shown.id, accept, ...(accept && enteredFor(shown)) });
  }

  function fill(question: PageQuestion, wording: Wording): void {
    message.textContent = messageOf(question);
    field.hidden = question.kind !== "prompt";
    field.value = question.default_text ?? "";
    list.hidden = question.kind !== "select";
    list.replaceChildren(...listOf(question.options ?? []));
    files.accept = question.accept ?? "";
    files.multiple = question.multiple ?? false;
    yes.textContent = wording.yes;
    no.textContent = wording.no ?? "";
    no.hidden = wording.no === undefined;
  }

  /** Uploads files in order, and answers with the names under which they were stored. */
  async function send(question: PageQuestion, chosen: readonly File[]): Promise<void> {
    sending = new AbortController();
    const { signal } = sending;
    no.focus();
    yes.disabled = true;
    try {
      const names: string[] = [];
      for (const file of chosen) {
        message.textContent = `${file.name} is being uploaded, ${names.length + 1} of ${chosen.length}.`;
        names.push(await uploadFile(file, signal));
      }
      signal.throwIfAborted();
      reply({ question_id: question.id, accept: true, files: names });
    } catch (thrown) {
      if (signal.aborted) return;
      sending = undefined;
      showMessage(`The upload failed: ${thrown instanceof Error ? thrown.message : "the file was not sent"}.`);
      message.textContent = messageOf(question);
      yes.disabled = false;
      yes.focus();
    }
  }

  panel.addEventListener("submit", (event) => {
    event.preventDefault();
    respond(true);
  });
  no.addEventListener("click", () => respond(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.preventDefault();
    respond(no.textContent === "");
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    respond(true);
  });
  // A single click chooses an option, as in a browser's own list.
  list.addEventListener(
    "click",
    ({ target }) => void (target instanceof HTMLOptionElement && !target.disabled && respond(true)),
  );
  files.addEventListener("change", () => {
    const chosen = [...(files.files ?? [])];
    // Without this, choosing the same file again would not be a change.
    files.value = "";
    if (shown && chosen.length > 0) void send(shown, chosen);
  });

  function show(now: Shown): void {
    const { state, interruption } = now;
    const pages = state?.pages ?? [];
    const isOfActive = ({ page_id }: PageQuestion) => pages.find(({ active }) => active)?.id === page_id;
    latest = now;
    if (interruption) answered = undefined;
    const open = interruption ? [] : (state?.questions ?? []);
    const known = open.filter(({ id, kind }) => kind in wordings && id !== answered);
    const question = known.find(isOfActive) ?? known[0];
    const isOurs = hasControl(now);
    const isNew = question?.id !== shown?.id;
    const hadFocus = panel.contains(document.activeElement);
    const wording = question && wordingOf(question);
    shown = question;
    panel.hidden = !question;
    if (isNew || !isOurs) sending = void sending?.abort();
    for (const part of [field, list, no]) part.disabled = !isOurs;
    yes.disabled = !isOurs || sending !== undefined;
    if (question && wording) {
      const title = pages.find(({ id }) => id === question.page_id)?.title || "The page";
      const whom = isOurs ? "" : ` ${clientName(state?.control.holder_client_id, now)} must answer.`;
      find("question-heading", HTMLElement).textContent = `${title} ${wording.heading}${whom}`;
      if (isNew) {
        fill(question, wording);
        movePanel(panel, question.kind === "select" && isOurs ? lastPress() : undefined);
      }
      if (isNew && isOurs) (({ prompt: field, select: list })[question.kind] ?? yes).focus();
    }
    if (!question && hadFocus && isOurs) focusPicture();
  }

  return show;
}
