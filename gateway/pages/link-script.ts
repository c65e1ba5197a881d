/**
 * Script of pages that links in e-mails open. The script removes the token from the address, so that the history does
 * not contain the token. The request needs a button press, so that e-mail programs that prefetch links do not use up
 * the token.
 */
export const linkScript = `
const about = document.querySelector("#about");
const outcome = document.querySelector("#outcome");
const form = document.querySelector("form");
const button = form.querySelector("button");
let token = location.hash.slice(1);
function takeToken() {
  if (location.hash.length > 1) token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}
function showOutcome(text, isFault) {
  outcome.textContent = text;
  outcome.className = isFault ? "fault" : "";
}
async function send() {
  const { path, done } = form.dataset;
  const answer = await fetch(path + "?" + new URLSearchParams({ token }));
  if (!answer.ok) {
    const { title, detail = title } = await answer.json();
    throw new Error(detail[0].toUpperCase() + detail.slice(1) + ".");
  }
  form.remove();
  about.remove();
  showOutcome(done, false);
}
takeToken();
addEventListener("hashchange", takeToken);
if (token === "") showOutcome("This link is not complete. Open the link in the e-mail, or copy all of it.", true);
button.disabled = token === "";
form.addEventListener("submit", (event) => {
  event.preventDefault();
  button.disabled = true;
  showOutcome("", false);
  send().catch((error) => {
    showOutcome(error.message, true);
    button.disabled = false;
  });
});
`;
