/* Watches a session and prints how its picture arrives. A program of its own, because it runs in the network of the service. */
import { launchPlainBrowser } from "./plain-browser.ts";
import { restClient } from "./rest.ts";

const [url = "", key = ""] = process.argv.slice(2);
const rest = restClient({ url, key });
const created = await rest("/v1/sessions", { runtime: "chromium" });
if (created.status !== 201) throw new Error(`create: ${created.status} ${JSON.stringify(created.body)}`);
const session = `/v1/sessions/${created.body.id}`;
const { body: link } = await rest(`${session}/view-links`, {});
const browser = await launchPlainBrowser();
try {
  const page = await browser.newPage();
  await page.addInitScript(() => {
    const Original = RTCPeerConnection;
    const connections: RTCPeerConnection[] = [];
    Object.assign(globalThis, { connections });
    globalThis.RTCPeerConnection = class extends Original {
      constructor(configuration?: RTCConfiguration) {
        super(configuration);
        connections.push(this);
      }
    };
  });
  await page.goto(link.url);
  await page.locator("canvas[data-sequence^=video]").waitFor({ timeout: 60_000 });
  const protocols = await page.evaluate(async () => {
    // Cast: the script above sets it.
    const { connections } = globalThis as unknown as { connections: RTCPeerConnection[] };
    const reports = await Promise.all(connections.map((each) => each.getStats()));
    const stats = reports.flatMap((report) => [...report.values()]);
    const used = new Set(
      stats.flatMap(({ type, nominated, remoteCandidateId }) =>
        type === "candidate-pair" && nominated ? [remoteCandidateId] : [],
      ),
    );
    return [...new Set(stats.filter(({ id }) => used.has(id)).map(({ protocol }) => protocol))];
  });
  console.log(`video by ${protocols}`);
} finally {
  await browser.close();
  await rest(session, undefined, { method: "DELETE" });
}
