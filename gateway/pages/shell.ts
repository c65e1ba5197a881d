import { Html, html, type Insert } from "../../src/platform/html.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { style } from "./style.ts";

// Adds a copy button to every example. Pages are complete without it.
const script = `
for (const pre of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(pre.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  pre.prepend(button);
}
`;

/** Style and script of a page. */
interface Own {
  /** Style in addition to the common one. */
  readonly style: string;
  /** Script in place of the script that copies examples; "" for none. */
  readonly script: string;
}

const plain: Own = { style: "", script };

/** Headers of pages with the common style and script. */
export const pageHeaders = pageHeadersFor(style, script);

/** Style and script of a page with only the common style and no script. */
export const unscripted: Own = { style: "", script: "" };

/** Headers of pages with the common style and no script. */
export const unscriptedHeaders = pageHeadersFor(style, "");

/** Renders a page around its body. */
export function page(title: string, body: Insert, own = plain): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${new Html(style + own.style)}</style>
</head>
<body>
${body}
${
  own.script !== "" &&
  html`<script>${new Html(own.script)}</script>
`
}</body>
</html>
`.markup;
}
