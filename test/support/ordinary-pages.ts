/**
 * Pages without a bot check: the markup of each body by title. Some embed, load or mention parts of vendors' checks.
 */
export const ordinaryPages: Readonly<Record<string, string>> = {
  "Sign in": `<h1>Sign in</h1><form><input type=email><input type=password><button>Sign in</button></form>`,
  "Sign in with an invisible badge": `<form><input type=email><input type=password><button>Go</button></form>
    <div class=grecaptcha-badge style="width:256px;height:60px;position:fixed;bottom:14px;right:0">
    <iframe src="https://www.google.com/recaptcha/api2/anchor?ar=1&k=6L&size=invisible" width=256 height=60></iframe></div>
    <textarea name=g-recaptcha-response hidden></textarea>`,
  "Contact with reCAPTCHA v3": `<h1>Write to us</h1><form><textarea></textarea><button>Send</button></form>
    <script src="https://www.google.com/recaptcha/api.js?render=6L"></script>
    <iframe src="https://www.recaptcha.net/recaptcha/enterprise/anchor?k=6L&cb=1&size=invisible" width=256 height=60></iframe>`,
  "Newsletter with a puzzle not yet shown": `<form><input type=email><button>Subscribe</button></form>
    <div style="visibility:hidden;position:absolute;top:-10000px;width:100%">
    <iframe src="https://www.google.com/recaptcha/api2/bframe?hl=en&k=6L" width=400 height=580></iframe></div>`,
  "Sign up with an invisible hCaptcha": `<form><input><button>Create account</button></form>
    <iframe style="display:none" src="https://newassets.hcaptcha.com/captcha/v1/1/static/hcaptcha.html#frame=challenge&id=0"></iframe>
    <iframe width=300 height=74 src="https://newassets.hcaptcha.com/captcha/v1/1/static/hcaptcha.html#frame=checkbox-invisible&id=0"></iframe>`,
  "Form with a Turnstile that was passed": `<form><input name=cf-turnstile-response type=hidden value=0.abc>
    <iframe width=300 height=65 src="https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/av0/normal/auto/"></iframe>
    <button>Send</button></form>`,
  "Shop with an invisible Turnstile": `<h1>Tea</h1><p>Assam, Darjeeling, Ceylon.</p><iframe width=0 height=0 style="border:0"
    src="https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/av0/invisible/auto/"></iframe>`,
  "Article behind Cloudflare's sensor": `<article><h1>Tides</h1><p>The sea rises twice a day.</p></article>
    <script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>
    <script src="https://challenges.cloudflare.com/turnstile/v0/api.js" async></script>`,
  "Flat search with a DataDome tag": `<h1>Flats in Ulm</h1><ul><li>2 rooms<li>3 rooms</ul>
    <script src="https://js.captcha-delivery.com/tags.js" async></script>`,
  "Car site with a PerimeterX sensor": `<h1>Used cars</h1><p>120 offers</p><div id=px-captcha hidden></div>
    <iframe src="https://collector-pxabc.px-cloud.net/frame" style="display:none"></iframe>`,
  "Bank with an Arkose frame in waiting": `<h1>Your bank</h1><form><input type=tel><button>Next</button></form>
    <iframe src="https://client-api.arkoselabs.com/v2/2.4/enforcement.a1.html#1" style="width:0;height:0"></iframe>`,
  "Arkose's advertisement": `<h1>Stop fraud today</h1><p>Trusted by banks.</p>
    <iframe src="https://www.arkoselabs.com/v2/tour" width=600 height=400></iframe>`,
  "hCaptcha's documentation in a frame": `<h1>Integration guide</h1>
    <iframe src="https://docs.hcaptcha.com/captcha/guide" width=800 height=600></iframe>`,
  "A film in a frame of Cloudflare's": `<h1>Holiday</h1>
    <iframe src="https://iframe.cloudflarestream.com/31c9291ab41fac05471db4e73aa11717" width=640 height=360></iframe>`,
  "A map of Google's": `<h1>How to find us</h1><iframe src="https://www.google.com/maps/embed?pb=1" width=600 height=450></iframe>`,
  "What is a CAPTCHA?": `<article><h1>What is a CAPTCHA?</h1><p>A test that asks you to prove you are human. You may be told to
    verify that you are human, to press and hold a button, or to pick every picture with a bus.</p>${"<p>The first of them showed warped letters, which readers of the time found as hard as machines did.</p>".repeat(25)}
    <button>Share</button></article>`,
  "Are you human? A history of the Turing test": `<nav>${"<a href=/x>Topic</a> ".repeat(12)}</nav>
    <h1>Are you human? A history of the Turing test</h1><p>In 1950 a question was asked.</p><button>Read on</button>`,
  "Are you human? The quiz": `<h2>The quiz</h2>${"<a href=/q>Question</a> ".repeat(10)}<button>Start</button>`,
  "reCAPTCHA for developers": `<h1>Add a widget</h1><pre>&lt;div class="g-recaptcha" data-sitekey="key"&gt;&lt;/div&gt;</pre>
    <pre>https://www.google.com/recaptcha/api.js</pre><button>Copy</button>`,
  "Why sites say 'Just a moment...'": `<h1>Why sites say "Just a moment..."</h1><p>Some sites look at a browser for a few seconds.</p>`,
  "Press release": `<h1>Press</h1><p>Hold the date: our fair opens in May.</p><button>Register</button>`,
  "Robot vacuum cleaners": `<h1>Robots that clean</h1><p>Is this robot any good? We are not a robot maker.</p><button>Buy</button>`,
  "Cookie banner": `<div role=dialog><h2>We value your privacy</h2><p>We and 812 partners use cookies.</p><button>Accept all</button>
    <button>Reject all</button></div><h1>News</h1>`,
  "Cookie banner in a frame": `<h1>Weather</h1><iframe srcdoc="<h2>Cookies</h2><button>OK</button>" width=500 height=300></iframe>`,
  "Age gate": `<h1>Are you over 18?</h1><button>Yes</button><button>No</button>`,
  "Region gate": `<h1>Where are you?</h1><select><option>Here<option>There</select><button>Continue</button>`,
  "Security settings": `<h1>Security check-up</h1><p>Your account is safe.</p><label><input type=checkbox> Warn me</label><button>Save</button>`,
  "Confirm your e-mail": `<h1>Confirm your e-mail address</h1><p>We have sent you a code.</p><input inputmode=numeric><button>Verify</button>`,
  "Two-step verification": `<h1>Enter the 6-digit code</h1><input autocomplete=one-time-code><button>Verify</button>`,
  "Identity verification": `<h1>Verify your identity</h1><p>Take a photo of your passport.</p><button>Begin</button>`,
  "Sign up with a box of its own": `<h1>Join us</h1><form><input type=email><input type=password>
    <label><input type=checkbox> I am not a robot</label><button>Join</button></form>`,
  "Not found": `<h1>404</h1><p>There is nothing here.</p><a href=/>Home</a>`,
  "Access denied": `<h1>403 Forbidden</h1><p>You do not have the right to see this page.</p>`,
  "Too many requests": `<h1>429</h1><p>Slow down and try again in a minute.</p>`,
  "Under maintenance": `<h1>Back soon</h1><p>We are checking our servers.</p>`,
  "Please wait": `<h1>Please wait</h1><p>Your report is being made.</p><progress></progress>`,
  Empty: ``,
  "Nothing but a script": `<script>document.title = "Set by script"</script>`,
  "A canvas alone": `<canvas width=300 height=300></canvas>`,
  "A game": `<h1>Hold the button</h1><p>Press space to jump.</p><canvas width=300 height=200></canvas><button>Start</button>`,
  "Search results": `<input type=search value="are you human">${Array.from({ length: 10 }, (_, index) => `<h3><a href=/${index}>Are you human? ${index}</a></h3><p>Verify you are human, says result ${index}.</p>`).join("")}`,
  "A shop's product": `<h1>Mug "Not a robot"</h1><img alt=mug><p>12 EUR</p><button>Add to basket</button>`,
  "A shop's list": `${Array.from({ length: 60 }, (_, index) => `<article><h2>Thing ${index}</h2><a href=/${index}>${index} EUR</a><button>Buy</button></article>`).join("")}`,
  "A basket": `<h1>Basket</h1><table><tr><td>Mug<td>12 EUR</table><button>Check out</button>`,
  "A checkout with a payment frame": `<h1>Pay</h1><iframe srcdoc="<input placeholder=Card>" width=400 height=60></iframe><button>Pay 12 EUR</button>`,
  "A table of figures": `<table>${Array.from({ length: 400 }, (_, row) => `<tr><td>${row}<td>${row * row}`).join("")}</table>`,
  "A forum thread": `<h1>How do I get past "verify you are human"?</h1>${"<div><b>anon</b><p>I see it on every site now, and the box just spins. Has anybody found out why that is?</p></div>".repeat(20)}
    <textarea></textarea><button>Reply</button>`,
  "A page of frames": `${Array.from({ length: 8 }, (_, index) => `<iframe srcdoc="<p>${index}</p>" width=120 height=90></iframe>`).join("")}`,
  "A page whose parts have the names of the document's": `<form name=querySelectorAll></form><img name=createTreeWalker>
    <img name=readyState><img name=body><h1>Odd names</h1><button>OK</button>`,
  "A page that frames a page about a check": `<h1>Reader</h1><p>Shown below as it was on Monday.</p>
    <iframe srcdoc="<title>Verify you are human</title><h1>Verify you are human</h1><button>Begin</button>" width=300 height=200></iframe>`,
};

export const ordinaryHosts = [
  "challenges.cloudflare.com",
  "www.google.com",
  "www.recaptcha.net",
  "newassets.hcaptcha.com",
  "docs.hcaptcha.com",
  "js.captcha-delivery.com",
  "collector-pxabc.px-cloud.net",
  "client-api.arkoselabs.com",
  "www.arkoselabs.com",
  "iframe.cloudflarestream.com",
] as const;
