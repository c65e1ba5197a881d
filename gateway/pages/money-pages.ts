import type { FastifyInstance, FastifyReply } from "fastify";
import { maxProcessorWebhookBytes, type ProcessorName, type Processors } from "../../src/billing/processors.ts";
import type { PaymentSandbox } from "../../src/billing/sandbox/sandbox.ts";
import type { SandboxPage } from "../../src/billing/sandbox/sandbox-tools.ts";
import { html } from "../../src/platform/html.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { page, pageHeaders } from "./shell.ts";
import { style } from "./style.ts";

const ownStyle = `
.single form { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.6rem 0; }
.single form button { padding: .65rem 1.3rem; font: inherit; font-weight: 600; color: var(--on-button);
  background: var(--button); border: none; border-radius: 8px; cursor: pointer; }
.single form button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
`;

const headers = {
  ...pageHeadersFor(style + ownStyle, "", { forms: "'self'" }),
  "cache-control": "no-store",
};

/** Returns the path of a processor's payment notifications. */
const noticePath = (processor: ProcessorName): string => `/processors/${processor}`;

/** Mounts the return pages of payments, the webhooks of payment processors, and the payment sandbox if there is one. */
export async function mountMoneyPages(fastify: FastifyInstance, processors: Processors): Promise<void> {
  mountReturnPages(fastify);
  await mountNotices(fastify, processors);
  if (processors.sandbox) await mountSandbox(fastify, processors.sandbox);
}

/** Mounts the default pages to which a customer returns after a payment or a cancelled payment. */
function mountReturnPages(fastify: FastifyInstance): void {
  const pages = {
    done: ["Thank you", "Your payment is being processed. The tier of your account changes as soon as it arrives."],
    back: ["No payment was made", "You can close this page, or choose again."],
  } as const;
  for (const [name, [title, text]] of Object.entries(pages)) {
    const body = html`<main class="single"><p class="status">Pilothouse</p><h1>${title}</h1><p>${text}</p>
<p><a href="/console/billing">Plan and receipts</a></p></main>`;
    const whole = page(title, body);
    fastify.get(`/billing/${name}`, (_, reply) => reply.headers(pageHeaders).send(whole));
  }
}

/** Mounts the webhooks of payment processors. Bodies are read as bytes, since signatures cover the bytes. */
async function mountNotices(fastify: FastifyInstance, { receive }: Processors): Promise<void> {
  await fastify.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_, body, done) => done(null, body));
    for (const processor of ["stripe", "btcpay"] as const)
      scope.post<{ Body: Buffer | undefined }>(
        noticePath(processor),
        { bodyLimit: maxProcessorWebhookBytes },
        async ({ headers: shown, body }, reply) => {
          const isAccepted = await receive(processor, { headers: shown, body: body ?? Buffer.alloc(0) });
          return reply
            .code(isAccepted ? 200 : 400)
            .headers({ "content-type": "application/json" })
            .send("{}");
        },
      );
  });
}

async function mountSandbox(fastify: FastifyInstance, sandbox: PaymentSandbox): Promise<void> {
  type Route = { Params: { id: string }; Body: Buffer | undefined };
  const show = (reply: FastifyReply, shown: SandboxPage | undefined): FastifyReply =>
    shown ? reply.headers(headers).send(sandboxPage(shown)) : reply.code(404).headers(headers).send(nothing);
  fastify.get<Route>("/sandbox/:id", async ({ params }, reply) => show(reply, await sandbox.page(params.id)));
  fastify.post<Route>("/sandbox/:id", async ({ params, body }, reply) => {
    const action = new URLSearchParams(body?.toString() ?? "").get("action") ?? "";
    return show(reply, await sandbox.act(params.id, action));
  });
}

const nothing = page(
  "Nothing here",
  html`<main class="single"><p class="status">HTTP 404</p><h1>Nothing here</h1></main>`,
  { style: ownStyle, script: "" },
);

function sandboxPage({ title, lines, actions, backUrl }: SandboxPage): string {
  const buttons = Object.entries(actions).map(
    ([name, label]) => html`<button name="action" value="${name}">${label}</button>\n`,
  );
  const body = html`<main class="single"><p class="status">Sandbox</p><h1>${title}</h1>
${lines.map((line) => html`<p>${line}</p>\n`)}<form method="post">${buttons}</form>
${backUrl !== undefined && html`<p><a href="${backUrl}">Back to the service</a></p>`}</main>`;
  return page(title, body, { style: ownStyle, script: "" });
}
