import { readFile } from "node:fs/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startDemo } from "../../gateway/pages/demo.ts";
import { renderDocs } from "../../gateway/pages/docs-page.ts";
import { errorsPathOf, mountPages } from "../../gateway/pages/pages.ts";
import { style } from "../../gateway/pages/style.ts";
import { mailStyle } from "../../src/mail/mail-text.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { html } from "../../src/platform/html.ts";
import { allServices, builtServices, describeServices } from "../../tools/described-services.ts";

const document = describeServices(builtServices);
const docsHtml = renderDocs(document);

describe("the service's own documents", () => {
  let fastify: FastifyInstance;

  beforeAll(async () => {
    fastify = Fastify();
    const pages = {
      documents: async () => ({ openApiJson: JSON.stringify(document), docsHtml }),
      webhooksGuide: "# Receive webhooks",
      errorsPath: errorsPathOf("http://a.example/errors/"),
      home: "/console/",
    };
    mountPages(fastify, pages);
  });

  afterAll(() => fastify.close());

  test("include the OpenAPI document, with 304 if it is unchanged", async () => {
    const first = await fastify.inject("/v1/openapi.json");
    expect(first.json()).toEqual(document);
    const { etag } = first.headers;
    const again = await fastify.inject({ url: "/v1/openapi.json", headers: { "if-none-match": `W/${etag}, "other"` } });
    expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, "", etag]);
    const other = await fastify.inject({ url: "/v1/openapi.json", headers: { "if-none-match": '"other"' } });
    expect(other.statusCode).toBe(200);
  });

  test("redirect browsers from the root to the console, and show programs an index", async () => {
    const { statusCode, headers } = await fastify.inject({ url: "/", headers: { accept: "text/html,*/*;q=0.8" } });
    expect([statusCode, headers.location]).toEqual([302, "/console/"]);
    const index = await fastify.inject("/");
    expect([index.statusCode, index.json().openapi]).toEqual([200, "/v1/openapi.json"]);
  });

  test("include the webhook guide as text", async () => {
    const { body: reference } = await fastify.inject("/docs");
    const [, path = ""] = /href="([^"]+)">Receive webhooks/.exec(reference) ?? [];
    const { statusCode, headers, body } = await fastify.inject(path);
    expect([statusCode, headers["content-type"], body]).toEqual([
      200,
      "text/plain; charset=utf-8",
      "# Receive webhooks",
    ]);
  });

  test("forbid pages to load other resources", async () => {
    const { headers, body } = await fastify.inject("/docs");
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(headers["content-security-policy"]).toMatch(
      /^default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+';/,
    );
    expect(body).not.toMatch(/<(link|img|iframe|script src|style src)\b|@import|url\(/);
  });

  test.each([
    ["light", /:root \{([^}]+)\}/],
    ["dark", /(?:"dark"\]|:root) \{([^}]+)\}/],
  ])("have the %s colours of the console", async (scheme, block) => {
    const consoleStyle = await readFile(new URL("../../console/style.css", import.meta.url), "utf8");
    const partOf = (css: string, mark: string) => css.slice(scheme === "dark" ? css.indexOf(mark) : 0);
    const coloursOf = (css: string): readonly string[] => block.exec(css)?.[1]?.match(/#[0-9a-f]{6}/g) ?? [];
    const known = coloursOf(partOf(consoleStyle, '[data-scheme="dark"] {'));
    expect(known.length).toBeGreaterThan(10);
    const own = coloursOf(partOf(style, "prefers-color-scheme: dark"));
    // The console has no colour for WebSocket operations.
    expect(own.filter((colour) => !known.includes(colour))).toEqual([scheme === "dark" ? "#bf9bff" : "#6b3fb8"]);
    const consoleFonts = /--font-sans: (.+);/.exec(consoleStyle)?.[1];
    for (const css of [style, mailStyle]) expect(css).toContain(consoleFonts);
  });

  test.each(Object.entries(errorTable))("explain %s at its type URI", async (slug, { status, title }) => {
    const { statusCode, body } = await fastify.inject(`/errors/${slug}`);
    expect(statusCode).toBe(200);
    expect(body).toContain(`HTTP ${status}`);
    expect(body).toContain(`<h1>${title}</h1>`);
  });

  test.each(["nope", "toString", "%3Cscript%3E"])("list all errors with status 404 at /errors/%s", async (slug) => {
    const { statusCode, headers, body } = await fastify.inject(`/errors/${slug}`);
    expect([statusCode, headers["content-type"]]).toEqual([404, "text/html; charset=utf-8"]);
    expect(body).toContain('<a href="not-found">');
  });
});

describe("the reference page", () => {
  test.each([
    ["of the built services", builtServices],
    ["of the whole contract", allServices],
  ])("%s has a section per operation and no broken links", (_, services) => {
    const described = describeServices(services);
    const page = renderDocs(described);
    const sections = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const operations = Object.values(described.paths).flatMap((item) => Object.values(item));
    expect(operations.filter(({ operationId }) => !sections.has(operationId))).toEqual([]);
    const targets = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(targets.filter((id) => !sections.has(id))).toEqual([]);
  });

  test("links each operation by its title", () => {
    const navigation = docsHtml.slice(docsHtml.indexOf("<nav"), docsHtml.indexOf("</nav>"));
    const links = [...navigation.matchAll(/<li><a href="#(\w+)"><span[^>]*>\w+<\/span> ([^<]+)<\/a>/g)];
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    const streams = Object.values(document["x-websockets"] ?? {});
    expect(Object.fromEntries(links.map(([, id, title]) => [id, title]))).toEqual(
      Object.fromEntries(
        [...operations, ...streams].map(({ operationId, summary }) => [operationId, html`${summary}`.markup]),
      ),
    );
  });

  test("escapes texts of the contract", () => {
    const tags = [{ name: "Session", description: "<b>bold</b> & `<i>`" }];
    const page = renderDocs({ ...document, tags });
    expect(page).toContain("&lt;b&gt;bold&lt;/b&gt; &amp; <code>&lt;i&gt;</code>");
  });

  test("shows a curl command that a shell parses correctly", () => {
    expect(docsHtml).toContain(
      "curl -X POST http://localhost:8080/v1/sessions/ses_01jd2z5r1v7k9m3q8t4w6x0y2b/interact",
    );
    expect(docsHtml).toContain("curl -N http://localhost:8080/v1/sessions/ses_01jd2z5r1v7k9m3q8t4w6x0y2b/events");
  });
});

describe("the demo page", () => {
  test("is one page on a separate listener until it is stopped", async () => {
    const demo = await startDemo("127.0.0.1");
    const answer = await fetch(demo.url);
    expect([answer.status, demo.url]).toEqual([200, `http://${demo.hostPort}/`]);
    expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
    const page = await answer.text();
    for (const id of ["name", "go", "thanks"]) {
      expect(page).toContain(`id="${id}"`);
    }
    expect((await fetch(new URL("/other", demo.url))).status).toBe(404);
    expect((await fetch(demo.url, { method: "POST", body: "x" })).status).toBe(405);
    await demo.stop();
    await demo.stop();
    await expect(fetch(demo.url)).rejects.toThrow();
  });
});
