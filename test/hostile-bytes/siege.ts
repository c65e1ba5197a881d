import type { Case, Step } from "./bytes.ts";
import { Judge } from "./judge.ts";
import { send } from "./send.ts";
import type { Door, World } from "./world.ts";

/** A case, and where it goes. */
export interface Shot {
  readonly door: Door;
  readonly sent: Case;
}

const atOnce = 32;
/** Milliseconds since the last byte of an answer. */
const patienceMs = 40;
const shrinkTries = 24;

/** Sends cases to a world and judges what becomes of it. */
export class Siege {
  /** Cases that were sent, by door. */
  readonly counts: Record<string, number> = {};
  readonly #world: World;
  readonly #judge: Judge;

  constructor(world: World) {
    this.#world = world;
    this.#judge = new Judge(world);
  }

  /** Sends cases, many at a time. Returns how the smallest one that does harm looks, once the world is whole again. */
  async run(shots: readonly Shot[]): Promise<string | undefined> {
    const wrong = await this.#try(shots);
    if (wrong.length === 0) return undefined;
    console.error(`${shots.length} cases did harm, which are now reduced: ${wrong.join("; ")}`);
    const found = await this.#reduce(shots);
    await this.#revive();
    return found ?? `not by one case of ${shots.length} alone: ${wrong.join("; ")}`;
  }

  async #try(shots: readonly Shot[]): Promise<string[]> {
    const left = [...shots];
    const answers: Buffer[] = [];
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        for (let shot = left.pop(); shot; shot = left.pop()) {
          this.counts[shot.door.name] = (this.counts[shot.door.name] ?? 0) + 1;
          answers.push(await send(shot.door, shot.sent, patienceMs));
        }
      }),
    );
    return this.#judge.verdict(answers);
  }

  /** Finds the half that does harm again and again, then drops steps of the case that is left. */
  async #reduce(shots: readonly Shot[]): Promise<string | undefined> {
    let harmful = shots;
    let wrong: string[] = [];
    const isHarmful = async (some: readonly Shot[]): Promise<boolean> => {
      await this.#revive();
      const verdict = await this.#try(some);
      if (verdict.length > 0) wrong = verdict;
      return verdict.length > 0;
    };
    while (harmful.length > 1) {
      const middle = Math.ceil(harmful.length / 2);
      const halves = [harmful.slice(0, middle), harmful.slice(middle)];
      const half = (await isHarmful(halves[0] ?? []))
        ? halves[0]
        : (await isHarmful(halves[1] ?? []))
          ? halves[1]
          : undefined;
      if (!half) return undefined;
      harmful = half;
    }
    const [shot] = harmful;
    if (!shot || !(await isHarmful(harmful))) return undefined;
    let { steps } = shot.sent;
    for (let at = 0, tries = 0; at < steps.length && steps.length > 1 && tries < shrinkTries; tries += 1) {
      const fewer = steps.filter((_step, index) => index !== at);
      if (await isHarmful([{ door: shot.door, sent: { ...shot.sent, steps: fewer } }])) steps = fewer;
      else at += 1;
    }
    return `${shot.door.name}, ${shot.sent.name}, then ${shot.sent.leave}: ${wrong.join("; ")}\nsteps: ${steps.map(shown).join(" ")}`;
  }

  /** Starts what has ended, or all that does not answer. */
  async #revive(): Promise<void> {
    for (const part of this.#judge.ended()) await part.restart();
    this.#judge.accept();
    if ((await this.#judge.verdict([])).length === 0) return;
    for (const part of this.#world.parts) await part.restart();
    await this.#world.renewSession();
    this.#judge.accept();
  }
}

const shown = (step: Step): string => (Buffer.isBuffer(step) ? step.toString("hex") : `<${step}>`);
