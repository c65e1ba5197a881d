/**
 * What the status page does besides being there: it takes the place of its main part when the stream tells of a change, and
 * says how a subscription went without leaving. All who follow do not ask in the same moment.
 */
export const statusScript = `
const live = () => document.querySelector("#live");
const outcome = document.querySelector("#outcome");
async function renew() {
  const answer = await fetch(location.pathname.replace(/\\/subscribe$/, ""));
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("#status").replaceWith(fresh.querySelector("#status"));
  document.title = fresh.title;
  live().textContent = "Live.";
}
let before;
let soon;
const stream = new EventSource("/v1/status/stream");
stream.onmessage = ({ data }) => {
  const { updated_at, ...status } = JSON.parse(data);
  const text = JSON.stringify(status);
  const { dataset } = document.querySelector("#status");
  const incidents = status.incidents.map(({ id, updates }) => id + " " + updates.length).join();
  const isShown = before === undefined && dataset.status === status.status && dataset.incidents === incidents;
  live().textContent = "Live.";
  if (text === before || isShown) return void (before = text);
  before = text;
  clearTimeout(soon);
  soon = setTimeout(() => renew().catch(() => undefined), Math.random() * 1000);
};
stream.onerror = () => { live().textContent = "Not live at the moment."; };
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  const say = (text, isFault) => {
    outcome.textContent = text;
    outcome.className = isFault ? "fault" : "";
  };
  try {
    const body = JSON.stringify(Object.fromEntries(new FormData(event.target)));
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/v1/status/subscribe", { method: "POST", headers, body });
    const { email, detail, title } = await answer.json();
    if (answer.ok) say("A mail with a link to confirm is on its way to " + email + ".", false);
    else say("That did not work: " + (detail ?? title) + ".", true);
  } catch {
    say("The service cannot be reached.", true);
  }
  button.disabled = false;
});
`;
