import type { Case, Step } from "./bytes.ts";
import { Judge } from "./judge.ts";
import { send } from "./send.ts";
import type { EntryPoint, World } from "./world.ts";

/** Case with its target port. */
export interface Shot {
  readonly entryPoint: EntryPoint;
  readonly sent: Case;
}

const atOnce = 32;
/** Milliseconds without a byte after which a response has ended. */
const timeoutMs = 40;
const shrinkTries = 24;

/** Sends cases to all processes and checks their state. */
export class Siege {
  /** Number of cases sent per port. */
  readonly counts: Record<string, number> = {};
  readonly #world: World;
  readonly #judge: Judge;

  constructor(world: World) {
    this.#world = world;
    this.#judge = new Judge(world);
  }

  /** Sends cases concurrently. After a fault, restarts the processes and returns the smallest case that causes it. */
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
          this.counts[shot.entryPoint.name] = (this.counts[shot.entryPoint.name] ?? 0) + 1;
          answers.push(await send(shot.entryPoint, shot.sent, timeoutMs));
        }
      }),
    );
    return this.#judge.verdict(answers);
  }

  /** Bisects the cases that cause a fault, then removes steps from the remaining case. */
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
      if (await isHarmful([{ entryPoint: shot.entryPoint, sent: { ...shot.sent, steps: fewer } }])) steps = fewer;
      else at += 1;
    }
    return `${shot.entryPoint.name}, ${shot.sent.name}, then ${shot.sent.leave}: ${wrong.join("; ")}\nsteps: ${steps.map(shown).join(" ")}`;
  }

  /** Restarts exited processes, or all processes if the state is still faulty. */
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
