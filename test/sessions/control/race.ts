import { expect } from "vitest";
import { BareClient } from "../../support/cdp-proxy-scene.ts";
import type { DeployedGateway } from "../../support/deployment.ts";
import type { InputSite } from "../../support/input-site.ts";
import type { Rest } from "../../support/rest.ts";

/** Participants of the race. */
export interface Race {
  readonly gateways: readonly [DeployedGateway, DeployedGateway];
  /** Paths of the agent session and of its browser session, which shows the site. */
  readonly agent: string;
  readonly session: string;
  readonly site: InputSite;
  readonly rounds: number;
}

/** Eight clients, each of which clicks at its own column. */
const clients = Array.from({ length: 8 }, (_, index) => ({ id: `client-${index}`, column: 100 + 10 * index }));

/** Columns of the API's and the CDP client's clicks. */
const others = { api: 50, cdp: 60 };

/**
 * Repeatedly lets eight clients take control at once, during clicks of the API and a CDP client, and then click. The
 * page receives only complete clicks of the holders, and earlier clicks of the API and CDP.
 */
export async function race({ gateways: [one, other], agent, session, site, rounds }: Race): Promise<void> {
  const through = (index: number): Rest => (index % 2 === 0 ? one : other).rest;
  using cdp = await BareClient.connect((await one.rest(`${session}/cdp-url`, {})).body.url);
  const page = await cdp.attach();
  const clickByCdp = () => {
    const at = { x: others.cdp, y: 200, button: "left", clickCount: 1 };
    return Promise.all(
      ["mousePressed", "mouseReleased"].map((type) => cdp.send("Input.dispatchMouseEvent", { ...at, type }, page)),
    );
  };
  site.told.length = 0;
  const expected: string[] = [];
  const byApi = { done: 0, inDoubt: 0 };
  for (let round = 0; round < rounds; round += 1) {
    const tap = { action: { kind: "tap", x: others.api, y: 200 } };
    const clicking = Promise.all([through(round)(`${session}/interact`, tap), clickByCdp()]);
    const answers = await Promise.all(
      clients.map(({ id }, index) => through(index + round)(`${agent}/takeover`, { client_id: id })),
    );
    const winners = clients.filter((_, index) => answers[index]?.status === 200);
    expect(winners.length, `winners of round ${round}`).toBe(1);
    const [winner = { id: "", column: 0 }] = winners;
    const losers = answers.filter(({ status }) => status !== 200);
    expect(new Set(losers.map(({ status, body }) => `${status} ${body.winner_client_id}`))).toEqual(
      new Set([`409 ${winner.id}`]),
    );
    const y = 100 + (round % 400);
    const sent = await Promise.all(
      clients.map(({ id, column: x }, index) => {
        const events = [
          { kind: "pointer_down", x, y },
          { kind: "pointer_up", x, y },
        ];
        return through(index)(`${agent}/input-event`, { client_id: id, events });
      }),
    );
    expect(sent.map(({ body }) => body.accepted)).toEqual(clients.map(({ id }) => (id === winner.id ? 2 : 0)));
    expected.push(`mousedown 0 ${winner.column} ${y}`, `mouseup 0 ${winner.column} ${y}`);
    const [{ status, body }] = await clicking;
    if (status === 200) byApi.done += 1;
    else expect([status, body.holder_client_id]).toEqual([409, winner.id]);
    if (body.in_doubt) byApi.inDoubt += 1;
    expect((await through(round)(`${agent}/handback`, { client_id: winner.id })).status).toBe(200);
  }
  const toldOfClients = () => site.told.filter((told) => told.startsWith("mouse") && Number(told.split(" ")[2]) >= 100);
  await expect.poll(() => toldOfClients().length, { timeout: 60_000 }).toBeGreaterThanOrEqual(expected.length);
  assertTold(
    site.told.filter((told) => told.startsWith("mouse")),
    expected,
    byApi,
  );
}

function assertTold(told: string[], expected: string[], byApi: { done: number; inDoubt: number }): void {
  const columnOf = (line: string) => Number(line.split(" ")[2]);
  const isOther = (line: string) => columnOf(line) === others.api || columnOf(line) === others.cdp;
  expect(told.filter((line) => !isOther(line))).toEqual(expected);
  // A holder's click is not interrupted by others.
  const torn = told.filter((line, index) => {
    const next = told[index + 1];
    return line.startsWith("mousedown") && !isOther(line) && next !== line.replace("mousedown", "mouseup");
  });
  expect(torn).toEqual([]);
  const clicked = told.filter((line) => line.startsWith("mousedown") && columnOf(line) === others.api).length;
  expect(clicked).toBeGreaterThanOrEqual(byApi.done);
  expect(clicked).toBeLessThanOrEqual(byApi.done + byApi.inDoubt);
  // Input held by a CDP client is released.
  const ofCdp = told.filter((line) => columnOf(line) === others.cdp);
  expect(ofCdp.filter((line) => line.startsWith("mousedown")).length).toBe(
    ofCdp.filter((line) => line.startsWith("mouseup")).length,
  );
}
