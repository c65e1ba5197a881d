/**
 * Script of the status page. Replaces the main part when the stream reports a change, after a random delay of up to 1 s
 * that spreads the load. Submits subscriptions without leaving the page.
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
let timer;
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
  clearTimeout(timer);
  timer = setTimeout(() => renew().catch(() => undefined), Math.random() * 1000);
};
stream.onerror = () => { live().textContent = "Updates are interrupted; the page reconnects by itself."; };
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  const showOutcome = (text, isFault) => {
    outcome.textContent = text;
    outcome.className = isFault ? "fault" : "";
  };
  try {
    const body = JSON.stringify(Object.fromEntries(new FormData(event.target)));
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/v1/status/subscribe", { method: "POST", headers, body });
    const { email, detail, title } = await answer.json();
    if (answer.ok) showOutcome("We have sent a link to confirm the subscription to " + email + ".", false);
    else showOutcome("The subscription failed: " + (detail ?? title) + ".", true);
  } catch {
    showOutcome("The service cannot be reached. Try again later.", true);
  }
  button.disabled = false;
});
`;
