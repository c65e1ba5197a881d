import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { TestSite } from "../support/test-site.ts";

/** Password and second factor of the site's account. */
export const credentials = { password: "correct horse", code: "246810" };

const prices = [19, 21, 7, 30, 12];
const pageSize = 2;

function productsPage(number: number): string {
  const products = prices.map((price, index) => ({ name: `Shirt ${index + 1}`, price }));
  const shown = products.slice((number - 1) * pageSize, number * pageSize);
  const articles = shown.map(
    ({ name, price }) => `<article><h2>${name}</h2><data value="${price}">${price} €</data></article>`,
  );
  const next = number * pageSize < products.length ? `<a rel="next" href="?page=${number + 1}">Next</a>` : "";
  // crawl4ai takes pages with less text for bot checks.
  const about = "<p>All shirts are of organic cotton, and come in five sizes.</p>";
  return `<title>Products</title>${about}${articles.join("")}${next}`;
}

const loginPage = `<title>Log in</title><form method="post" action="/password">
  <input name="user"><input name="password" type="password"><button>Log in</button></form>`;
// The field fills the page, so that a person can tap anywhere.
const codePage = `<title>Second factor</title><form method="post" action="/code">
  <input name="code" style="position: fixed; inset: 0; width: 100%; height: 100%"></form>`;
const accountPage = `<title>Account of ada</title><h1 id="account">Ada</h1>`;
const padPage = `<title>Pad</title><textarea autofocus></textarea><script>
  let keys = 0;
  addEventListener("keyup", () => { keys += 1; if (keys % 500 === 0) fetch("/typed", { method: "POST", body: keys }); });
</script>`;

/** Shop and bank that the examples visit. */
export class ExampleSite extends TestSite {
  /** Second factors that were entered. */
  readonly codes: string[] = [];
  /** Numbers of keys typed into `/pad`. */
  readonly typed: number[] = [];

  get url(): string {
    return `http://${this.host}`;
  }

  protected override answer(request: IncomingMessage, response: ServerResponse): void {
    void this.#respond(request, response).catch(() => response.destroy());
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://site");
    const form = new URLSearchParams(request.method === "POST" ? await text(request) : "");
    const send = (html: string) => response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(html);
    const redirect = (location: string, headers = {}) => response.writeHead(303, { location, ...headers }).end();
    const isLoggedIn = request.headers.cookie?.includes("login=ada") ?? false;
    const cookie = { "set-cookie": "login=ada; Max-Age=86400; HttpOnly" };
    if (pathname === "/products") send(productsPage(Number(searchParams.get("page") ?? "1")));
    else if (pathname === "/account") send(isLoggedIn ? accountPage : loginPage);
    else if (pathname === "/login") send(loginPage.replace("/password", "/first-factor"));
    else if (pathname === "/password" && form.get("password") === credentials.password) redirect("/account", cookie);
    else if (pathname === "/first-factor" && form.get("password") === credentials.password) send(codePage);
    else if (pathname === "/code") {
      this.codes.push(form.get("code") ?? "");
      redirect(form.get("code") === credentials.code ? "/account" : "/login", cookie);
    } else if (pathname === "/pad") send(padPage);
    else if (pathname === "/typed") {
      this.typed.push(Number([...form.keys()][0]));
      response.writeHead(204).end();
    } else response.writeHead(404).end();
  }
}
