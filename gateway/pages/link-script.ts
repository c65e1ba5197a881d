/**
 * Script of pages that links in mails open. The token leaves the browser only in the body of one request. The script
 * removes the token from the address, so that the history does not contain the token. The request needs a button press,
 * so that mail programs that prefetch links do not use up the token.
 */
export const linkScript = `
const main = document.querySelector("main");
const about = document.querySelector("#about");
const outcome = document.querySelector("#outcome");
const forms = document.querySelector("#forms");
let token = location.hash.slice(1);
function take() {
  if (location.hash.length > 1) token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}
function say(text, isFault) {
  outcome.textContent = text;
  outcome.className = isFault ? "fault" : "";
}
function show(name, value) {
  const heading = document.createElement("h4");
  const pre = document.createElement("pre");
  const code = document.createElement("code");
  heading.textContent = name;
  code.textContent = value;
  pre.append(code);
  const copy = document.createElement("button");
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(value);
    copy.textContent = "Copied";
  });
  pre.prepend(copy);
  outcome.after(...main.querySelectorAll("h4, pre"), heading, pre);
}
function reveal(input) {
  if (!input?.disabled) return;
  input.disabled = false;
  input.parentElement.hidden = false;
}
function faultOf({ title, detail, errors = [] }, form) {
  for (const { field } of errors) reveal(form.elements[field]);
  const labelOf = (field) => form.elements[field]?.labels[0].firstChild.textContent ?? field;
  const faults = errors.map(({ field, message }) => labelOf(field) + " " + message);
  const said = faults.length > 0 ? faults.join("; ") : detail ?? title;
  return said[0].toUpperCase() + said.slice(1) + ".";
}
async function send(form) {
  const { path, verb, tokenName, done } = form.dataset;
  const body = JSON.stringify({ ...Object.fromEntries(new FormData(form)), [tokenName]: token });
  const answer =
    verb === "GET"
      ? await fetch(path + "?" + new URLSearchParams({ [tokenName]: token }))
      : await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const text = await answer.text();
  const content = text === "" ? {} : JSON.parse(text);
  if (!answer.ok) throw new Error(faultOf(content, form));
  forms.remove();
  about.remove();
  say(done, false);
  for (const [name, value] of [["Access token", content.access_token], ["Refresh token", content.refresh_token]])
    if (value) show(name, value);
}
take();
addEventListener("hashchange", take);
if (token === "") say("This link is not complete. Open the link in the mail, or copy all of it.", true);
for (const form of document.forms) {
  const button = form.querySelector("button");
  button.disabled = token === "";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    button.disabled = true;
    say("", false);
    send(form).catch((error) => {
      say(error.message, true);
      button.disabled = false;
    });
  });
}
`;
