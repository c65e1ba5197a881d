import { createClipboard } from "./clipboard.ts";
import { connect } from "./connection.ts";
import { createDownloads } from "./downloads.ts";
import { createInputQueue } from "./input-queue.ts";
import { takeToken, takeViewerKey } from "./link.ts";
import type { Command, Problem, ServerMessage } from "./messages.ts";
import { createPicture } from "./picture.ts";
import { attachMouse, attachTouch, trackPresses } from "./pointer.ts";
import { createQuestionPanel } from "./question.ts";
import { attachKeyboard } from "./sent-keys.ts";
import { createTransfers } from "./transfers.ts";
import { createVideo } from "./video.ts";
import { clientName, createView, find, hasControl, type Shown } from "./view.ts";

/** Milliseconds for which a message to the viewer is shown. */
const refusalMs = 6_000;
/** Milliseconds between two measurements of the frame rate and the round-trip time. */
const measureMs = 1_000;

const canvas = find("picture", HTMLCanvasElement);
const field = find("keys", HTMLTextAreaElement);
const controlButton = find("control-button", HTMLButtonElement);
const picture = createPicture(canvas);
let shown: Shown = {
  interruption: { is: "waiting", why: "" },
  refusal: "",
  state: undefined,
  viewers: [],
  own: undefined,
};
let refusalTimer: number | undefined;

const command = (wanted: Command): void => connection.send({ command: wanted });
const render = createView(command);
const token = takeToken();
const viewerKey = takeViewerKey();
let sessionId: string | undefined;
const transfers = createTransfers({ token, viewerKey, sessionId: () => sessionId });
const showQuestion = createQuestionPanel({
  answer: (answer) => connection.send({ answer }),
  uploadFile: transfers.upload,
  showMessage,
  focusPicture: focusKeys,
  lastPress: trackPresses(canvas, field),
});
const showDownloads = createDownloads({ fetch: transfers.fetch, showMessage, focusPicture: focusKeys });

function focusKeys(): void {
  field.focus({ preventScroll: true });
}

function show(changes: Partial<Shown>): void {
  const hadControl = hasControl(shown);
  shown = { ...shown, ...changes };
  render(shown);
  const isInControl = hasControl(shown);
  if (isInControl && !hadControl) focusKeys();
  showQuestion(shown);
  showDownloads(shown);
  if (hadControl && !isInControl) {
    input.clear();
    // The focused field may have been disabled, which moves the focus to the body.
    if (document.activeElement === document.body) controlButton.focus();
  }
}

function showMessage(refusal: string): void {
  clearTimeout(refusalTimer);
  refusalTimer = window.setTimeout(() => show({ refusal: "" }), refusalMs);
  show({ refusal });
}

function refuse({ winner_client_id: winner, holder_client_id: holder, detail = "" }: Problem): void {
  clipboard.cancelRead();
  const who = winner ?? holder;
  showMessage(
    who === undefined ? `That did not work: ${detail}.` : `${clientName(who, shown)} has control at the moment.`,
  );
}

function receive({ hello, state, viewers, refused, clipboard: copied, room }: ServerMessage): void {
  if (hello) {
    sessionId = hello.session_id;
    show({ own: hello.viewer, interruption: undefined });
    video.begin(hello.media);
  }
  if (room) video.join(room);
  if (state) show({ state });
  if (viewers) show({ viewers: viewers.viewers });
  if (copied) clipboard.receive(copied.text ?? "");
  if (refused) refuse(refused);
}

function start() {
  return connect({
    token,
    viewerKey,
    onMessage: receive,
    onFrame: (message, onShown) =>
      picture.show(message, (sequence) => {
        canvas.dataset.sequence = String(sequence);
        onShown(sequence);
      }),
    onBreak: (why) => {
      video.end();
      show({ interruption: { is: "waiting", why } });
    },
    onOver: (why) => {
      video.end();
      show({ interruption: { is: "over", why }, viewers: [] });
    },
  });
}

/**
 * Starts to show the pictures per second and the round-trip time. While the session's page does not change, there are
 * no new pictures.
 */
function measure(): void {
  const output = find("latency", HTMLElement);
  let before = picture.shown;
  setInterval(() => {
    const rate = ((picture.shown - before) * 1_000) / measureMs;
    before = picture.shown;
    const roundTrip = connection.roundTrip();
    const way = roundTrip === undefined ? "" : `${Math.round(roundTrip)} ms round trip, `;
    output.textContent = `${way}${rate === 0 ? "page at rest" : `${Math.round(rate)} fps`}`;
  }, measureMs);
}

/**
 * Returns the URL of a typed address. Without a scheme, `localhost` and numeric addresses use http, because they rarely
 * have https; others use https.
 */
function urlOf(text: string): string {
  if (/^[a-z]+:/i.test(text) && !/^[\w.-]+:\d/.test(text)) return text;
  return `${/^(localhost|[\d.]+)(:|\/|$)/.test(text) ? "http" : "https"}://${text}`;
}

function attach(): void {
  const parts = { hasControl: () => hasControl(shown), push: input.push };
  attachMouse({ ...parts, canvas, picture, onPress: focusKeys });
  attachTouch({ ...parts, canvas, picture, onPress: focusKeys });
  attachKeyboard({
    ...parts,
    field,
    command,
    copy: clipboard.copy,
    paste: clipboard.paste,
    releaseFocus: () => controlButton.focus(),
  });
  canvas.addEventListener("click", () => {
    const { own, state, interruption } = shown;
    if (hasControl(shown) || !state || interruption) return;
    showMessage(own?.can_control ? "Press Take control first." : "This link is for watching only.");
  });
  controlButton.addEventListener("click", () => {
    connection.send(hasControl(shown) ? { hand_back: {} } : { take_control: {} });
  });
  const address = find("address", HTMLInputElement);
  const press = (id: string, act: () => unknown): void => find(id, HTMLButtonElement).addEventListener("click", act);
  for (const kind of ["back", "forward", "reload"] as const) press(kind, () => command({ kind }));
  press("open", () => {
    command({ kind: "open_page" });
    address.value = "";
    address.focus();
  });
  press("share", () => void clipboard.share(`${location.origin}${location.pathname}#${token}`));
  press("keyboard", focusKeys);
  press("copy", () => clipboard.copy());
  press("paste", () => clipboard.pasteFromClipboard());
  find("speed", HTMLDetailsElement).addEventListener("toggle", measure, { once: true });
  address.addEventListener("focus", () => address.select());
  find("go", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const text = address.value.trim();
    if (text === "" || !hasControl(shown)) return;
    command({ kind: "navigate", url: urlOf(text) });
    focusKeys();
  });
}

addEventListener("hashchange", () => void (location.hash.length > 1 && location.reload()));
const video = createVideo({
  picture,
  send: (message) => connection.send(message),
  onPicture: () => {
    canvas.dataset.sequence = `video ${picture.shown}`;
  },
});
const connection = start();
const input = createInputQueue(connection);
const clipboard = createClipboard({
  send: connection.send,
  pushPaste: (text) => input.push({ kind: "paste", text }),
  showMessage,
});
attach();
