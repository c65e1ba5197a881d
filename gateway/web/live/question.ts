import type { Answer, Question } from "./messages.ts";
import { find, nameOf, type Shown, steers } from "./view.ts";

/** What is said of a question, and on its buttons: no to the left, where there is a choice. */
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
};

/** Makes what shows the questions of pages, one after the other, and gives what the person who steers answers. */
export function createQuestionPanel(answer: (answer: Answer) => void, leave: () => void) {
  const panel = find("question", HTMLFormElement);
  const field = find("question-text", HTMLInputElement);
  const yes = find("question-yes", HTMLButtonElement);
  const no = find("question-no", HTMLButtonElement);
  let shown: Question | undefined;
  /** The question that was answered last: it stays open until the service has heard. */
  let answered: string | undefined;
  let latest: Shown | undefined;

  function reply(given: Answer): void {
    answer(given);
    answered = given.question_id;
    if (latest) show(latest);
  }

  function give(accept: boolean): void {
    if (!shown) return;
    reply({ question_id: shown.id, accept, ...(shown.kind === "prompt" && accept && { text: field.value }) });
  }

  function fill(question: Question, wording: Wording): void {
    find("question-message", HTMLElement).textContent =
      question.kind === "beforeunload" ? "" : (question.message ?? "");
    field.hidden = question.kind !== "prompt";
    field.value = question.default_text ?? "";
    yes.textContent = wording.yes;
    no.textContent = wording.no ?? "";
    no.hidden = wording.no === undefined;
  }

  panel.addEventListener("submit", (event) => {
    event.preventDefault();
    give(true);
  });
  no.addEventListener("click", () => give(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.preventDefault();
    give(no.textContent === "");
  });

  function show(now: Shown): void {
    const { state, trouble } = now;
    const pages = state?.pages ?? [];
    const isOfActive = ({ page_id }: Question) => pages.find(({ active }) => active)?.id === page_id;
    latest = now;
    if (trouble) answered = undefined;
    const open = trouble ? [] : (state?.questions ?? []);
    const known = open.filter(({ id, kind }) => kind in wordings && id !== answered);
    const question = known.find(isOfActive) ?? known[0];
    const isOurs = steers(now);
    const isNew = question?.id !== shown?.id;
    const hadFocus = panel.contains(document.activeElement);
    const { [question?.kind ?? ""]: wording } = wordings;
    shown = question;
    panel.hidden = !question;
    for (const part of [field, yes, no]) part.disabled = !isOurs;
    if (question && wording) {
      const title = pages.find(({ id }) => id === question.page_id)?.title || "The page";
      const whom = isOurs ? "" : ` ${nameOf(state?.control.holder_client_id, now)} is to answer.`;
      find("question-heading", HTMLElement).textContent = `${title} ${wording.heading}${whom}`;
      if (isNew) fill(question, wording);
      if (isNew && isOurs) (question.kind === "prompt" ? field : yes).focus();
    }
    if (!question && hadFocus && isOurs) leave();
  }

  return show;
}
