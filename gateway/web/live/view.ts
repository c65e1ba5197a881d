import type { Command, ListedViewer, PageTab, State } from "./messages.ts";
import { createTabs } from "./tabs.ts";

/** Contents of the viewer's page around the picture. */
export interface Shown {
  /** `waiting`: there is no connection yet. `over`: there will be none. Undefined while connected. */
  readonly interruption: { readonly is: "over" | "waiting"; readonly why: string } | undefined;
  /** Message to the viewer, such as why an action was refused; "" for none. */
  readonly refusal: string;
  readonly state: State | undefined;
  readonly viewers: readonly ListedViewer[];
  readonly own: ListedViewer | undefined;
}

/** Returns the element with an id. Throws if the element is missing or of another kind. */
export function find<Kind extends HTMLElement>(id: string, kind: abstract new () => Kind): Kind {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`);
  return element;
}

/** Returns whether this viewer has control. False during an interruption. */
export function hasControl({ state, own, interruption }: Shown): boolean {
  return interruption === undefined && own !== undefined && state?.control.holder_client_id === own.client_id;
}

/** Returns the display name of a client. */
export function clientName(clientId: string | undefined, { viewers, own }: Pick<Shown, "viewers" | "own">): string {
  if (clientId === own?.client_id) return "You";
  return viewers.find((viewer) => viewer.client_id === clientId)?.name ?? "Another viewer";
}

function controlStatusOf(shown: Shown): string {
  const { state, interruption } = shown;
  if (!state || interruption) return "";
  const since = state.control_changed_at
    ? ` (since ${new Date(state.control_changed_at).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" })})`
    : "";
  if (hasControl(shown)) return `You have control${since}`;
  if (state.control.state === "human_control")
    return `${clientName(state.control.holder_client_id, shown)} has control${since}`;
  return state.control.state === "agent_control" ? `The agent has control${since}` : "Nobody is in control";
}

/** Returns how to resolve a pause. */
function remedyOf(shown: Shown): string {
  if (hasControl(shown)) return "Solve it to continue the session.";
  if (shown.own?.can_control) return "Take control and solve it to continue the session.";
  return "The session continues when a person has solved it.";
}

function noticeOf(shown: Shown): string {
  const { interruption, refusal, state } = shown;
  if (interruption) return interruption.why;
  if (refusal) return refusal;
  if (state?.status === "paused") {
    const check = state.pause_reason ? ` (${state.pause_reason})` : "";
    return `The session is paused at a bot check${check}. ${remedyOf(shown)}`;
  }
  if (state?.pages?.some(({ active, crashed }) => active && crashed))
    return "The page has crashed. Reload it to continue.";
  if (state?.pages?.some(isUnloaded)) return "The page could not be loaded. Reload it, or go to another address.";
  return "";
}

/** Returns whether a page is active and shows the browser's error page. */
const isUnloaded = ({ active, url }: Pick<PageTab, "active" | "url">): boolean =>
  active === true && url.startsWith("chrome-error:");

function write(id: string, text: string): void {
  const element = find(id, HTMLElement);
  if (element.textContent !== text) element.textContent = text;
}

/** Creates a function that updates the viewer's page, except the picture. */
export function createView(command: (command: Command) => void) {
  const showTabs = createTabs(find("tabs", HTMLElement), command);
  const address = find("address", HTMLInputElement);

  return (shown: Shown): void => {
    const { interruption, state, viewers, own } = shown;
    const isInControl = hasControl(shown);
    const isPaused = state?.status === "paused";
    const { dataset } = document.body;
    dataset.is = interruption?.is ?? (state ? (isPaused ? "paused" : "live") : "waiting");
    dataset.isControlled = String(isInControl);
    write("status", { over: "Over", waiting: "Connecting", paused: "Paused", live: "Live" }[dataset.is] ?? "");
    write("notice", noticeOf(shown));
    write("control-status", controlStatusOf(shown));
    const controlButton = find("control-button", HTMLButtonElement);
    controlButton.hidden = !own?.can_control || interruption !== undefined;
    controlButton.textContent = isInControl ? "Hand back" : "Take control";
    for (const control of document.querySelectorAll<HTMLButtonElement>("[data-drives]"))
      control.disabled = !isInControl;
    address.readOnly = !isInControl;
    find("keys", HTMLTextAreaElement).disabled = !isInControl;
    const names = viewers.map(({ id, name }) => (id === own?.id ? "you" : name));
    write("viewers", names.length === 0 ? "" : `${names.length} watching: ${names.join(", ")}`);
    if (!state) return;
    const active = state.pages?.find((page) => page.active);
    const title = active?.title || "Untitled page";
    write("title", title);
    document.title = `${title} - live`;
    if (document.activeElement !== address || !isInControl)
      address.value = active && !isUnloaded(active) && active.url !== "about:blank" ? active.url : "";
    find("picture", HTMLCanvasElement).setAttribute("aria-label", `Live picture of the page: ${title}`);
    showTabs(state.pages ?? [], isInControl);
  };
}
