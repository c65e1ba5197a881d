import type { VendorPage } from "./vendor-site.ts";

/** Page that shows a bot check, and how a person passes it. */
export interface CheckPage extends VendorPage {
  /** Kind that must be detected. */
  readonly kind: string;
  /** Script that makes the check appear. */
  readonly provoke?: string;
  /** Element that passes the check, with the frames that contain it, or a point if no selector reaches it. */
  readonly pass:
    | { readonly selector: string; readonly frame?: readonly string[] }
    | { readonly x: number; readonly y: number };
}

const passInFrame = { selector: "#pass", frame: ["iframe.check"] };

/** Does what vendors' scripts do when their frame reports a passed check. */
const fill = (field: string) =>
  `<script>addEventListener("message", () => { document.querySelector("[name=${field}]").value = "token" })</script>`;
const leave = `<script>addEventListener("message", () => { document.cookie = "cleared=1; path=/"; location.reload() })</script>`;
const clearance = `onclick="document.cookie = 'cleared=1; path=/'; location.reload()"`;

const form = (inner: string) =>
  `<!DOCTYPE html><title>Sign in</title><h1>Sign in</h1><form onsubmit="return false"><input><input type=password>
  ${inner}<button id=submit>Sign in</button></form>`;
const frame = (src: string, size: string) => `<iframe class=check src="${src}" style="border:0;${size}"></iframe>`;

const turnstile =
  "https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/av0/rcv/a/0x4A/light/fbE/new/normal/auto/";
const checkbox = "width:304px;height:78px";
const puzzle = "width:400px;height:580px";

/** Each vendor's check in its usual forms. */
export const checkPages: Readonly<Record<string, CheckPage>> = {
  "a Turnstile in a closed shadow root": {
    kind: "turnstile",
    html: `<!DOCTYPE html><title>Comment</title><body style="margin:0"><div id=box></div><form><input type=hidden
      name=cf-turnstile-response></form><script>const root = box.attachShadow({ mode: "closed" });
      setTimeout(() => { root.innerHTML = '${frame(turnstile, "width:300px;height:65px")}' }, 100)</script>
      ${fill("cf-turnstile-response")}`,
    pass: { x: 100, y: 30 },
  },
  "Cloudflare's page in place of a document": {
    kind: "cloudflare",
    status: 403,
    headers: { "cf-mitigated": "challenge" },
    html: `<!DOCTYPE html><title>Nur einen Moment…</title><h1>shop.example</h1><button id=pass ${clearance}>weiter</button>`,
    pass: { selector: "#pass" },
  },
  "Cloudflare's page without its header": {
    kind: "cloudflare",
    status: 503,
    html: `<!DOCTYPE html><title>Just a moment...</title><script
      src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=8a"></script>
      <div id=challenge-stage><button id=pass ${clearance}>verify</button></div>`,
    pass: { selector: "#pass" },
  },
  "a reCAPTCHA checkbox": {
    kind: "recaptcha",
    html: form(`${frame("https://www.google.com/recaptcha/api2/anchor?ar=1&k=6L&size=normal", checkbox)}
      <textarea name=g-recaptcha-response style="display:none"></textarea>${fill("g-recaptcha-response")}`),
    pass: passInFrame,
  },
  "a reCAPTCHA checkbox in a form with a field named matches": {
    kind: "recaptcha",
    html: form(`${frame("https://www.google.com/recaptcha/api2/anchor?ar=1&k=6L&size=normal", checkbox)}
      <input name=matches><textarea name=g-recaptcha-response hidden></textarea>${fill("g-recaptcha-response")}`),
    pass: passInFrame,
  },
  "the puzzle of an invisible reCAPTCHA": {
    kind: "recaptcha",
    html: form(`<iframe src="https://www.recaptcha.net/recaptcha/enterprise/anchor?k=6L&size=invisible"
      style="width:256px;height:60px"></iframe><textarea name=g-recaptcha-response hidden></textarea>
      <div id=popup style="visibility:hidden;position:absolute;top:-10000px">
      ${frame("https://www.recaptcha.net/recaptcha/enterprise/bframe?hl=en&k=6L", puzzle)}</div>
      <script>document.querySelector("form").onsubmit = () => {
        fetch("https://www.recaptcha.net/recaptcha/enterprise/payload?p=1", { mode: "no-cors" });
        popup.style.visibility = "visible"; popup.style.top = "20px"; return false };
      addEventListener("message", () => { popup.style.visibility = "hidden" })</script>`),
    provoke: "#submit",
    pass: passInFrame,
  },
  "an hCaptcha checkbox": {
    kind: "hcaptcha",
    html: form(`${frame("https://newassets.hcaptcha.com/captcha/v1/4b0/static/hcaptcha.html#frame=checkbox&id=0&sitekey=1", checkbox)}
      <textarea name=h-captcha-response style="display:none"></textarea>${fill("h-captcha-response")}`),
    pass: passInFrame,
  },
  "the puzzle of an hCaptcha inside another frame": {
    kind: "hcaptcha",
    html: `<!DOCTYPE html><title>Pay</title><h1>Checkout</h1><iframe id=outer style="width:600px;height:620px"></iframe>
      <script>outer.srcdoc = \`<body>${frame("https://newassets.hcaptcha.com/captcha/v1/4b0/static/hcaptcha.html#frame=challenge&id=0", puzzle)}
      <script>addEventListener("message", () => document.querySelector("iframe").remove())<\\/script>\`</script>`,
    pass: { selector: "#pass", frame: ["#outer", "iframe.check"] },
  },
  "DataDome's page": {
    kind: "datadome",
    status: 403,
    html: `<!DOCTYPE html><title>shop.example</title><style>#cmsg{animation:A 1.5s}</style><p id=cmsg>Please enable JS</p>
      ${frame("https://geo.captcha-delivery.com/captcha/?initialCid=1&t=fe", "width:100%;height:600px")}${leave}`,
    pass: passInFrame,
  },
  "PerimeterX's page": {
    kind: "perimeterx",
    status: 403,
    html: `<!DOCTYPE html><title>Access to this page has been denied</title><h2>Before we continue...</h2>
      <div id=px-captcha style="height:90px"><div id=pass role=button ${clearance}>Press and hold</div></div>`,
    pass: { selector: "#pass" },
  },
  "PerimeterX's frame over a page": {
    kind: "perimeterx",
    html: `<!DOCTYPE html><title>Flat</title><h1>A flat by the sea</h1>
      ${frame("https://captcha.px-cdn.net/PXabc/captcha.html?a=c", "position:fixed;inset:0;width:100%;height:100%")}${leave}`,
    pass: passInFrame,
  },
  "an Arkose puzzle opened by a button": {
    kind: "arkose",
    html: form(`<div id=enforcement style="display:none">
      ${frame("https://client-api.arkoselabs.com/v2/2.4/enforcement.a1.html#11111111-1111", "width:558px;height:500px")}</div>
      <script>document.querySelector("form").onsubmit = () => {
        setTimeout(() => { enforcement.style.display = "block" }, 200); return false };
      addEventListener("message", () => { enforcement.style.display = "none" })</script>`),
    provoke: "#submit",
    pass: passInFrame,
  },
  "a page with a checkbox": {
    kind: "generic",
    html: `<!DOCTYPE html><title>One more step</title><h1>Verify you are human</h1>
      <label><input type=checkbox id=pass ${clearance}> Yes</label>`,
    pass: { selector: "#pass" },
  },
  "a page with characters to type": {
    kind: "generic",
    html: `<!DOCTYPE html><title>shop.example</title><h4>Enter the characters you see below</h4>
      <p>Sorry, we just need to make sure you're not a robot.</p><canvas width=200 height=70></canvas>
      <input type=text><button id=pass ${clearance}>Continue shopping</button>`,
    pass: { selector: "#pass" },
  },
  "a page in German": {
    kind: "generic",
    html: `<!DOCTYPE html><html lang=de><title>Sicherheit</title><h2>Bitte bestätigen Sie, dass Sie ein Mensch sind</h2>
      <button id=pass ${clearance}>Ich bin ein Mensch</button>`,
    pass: { selector: "#pass" },
  },
  "a page that hides the check from its own scripts": {
    kind: "generic",
    html: `<!DOCTYPE html><title>Are you human?</title><img name=querySelectorAll><img name=createTreeWalker>
      <script>Document.prototype.querySelectorAll = () => []; Element.prototype.checkVisibility = () => false</script>
      <div role=button id=pass ${clearance}>Press &amp; hold</div>`,
    pass: { selector: "#pass" },
  },
};

export const checkHosts = [
  "challenges.cloudflare.com",
  "www.google.com",
  "www.recaptcha.net",
  "newassets.hcaptcha.com",
  "geo.captcha-delivery.com",
  "captcha.px-cdn.net",
  "client-api.arkoselabs.com",
] as const;
