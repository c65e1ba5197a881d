import type { Page } from "playwright";

/**
 * A scrolling page that paints the time and the number of received presses as bits, so that pictures can be decoded.
 * The page repaints in every second frame, the rate of captures, and in the first frame after a press.
 */
export const clockPage = `<!DOCTYPE html><title>Clock</title><link rel="icon" href="data:,">
<style>body { margin: 0; font: 14px sans-serif } canvas { position: fixed; top: 0; left: 0 } p:nth-child(even) { background: #cde }</style>
<canvas width="640" height="32"></canvas>
${Array.from({ length: 400 }, (_, index) => `<p>Item ${index}, of which there are ${(index * 7919) % 1000}</p>`).join("\n")}
<script>
  const pen = document.querySelector("canvas").getContext("2d");
  const scrolls = location.search !== "?still";
  let presses = 0;
  let frame = 0;
  addEventListener("mousedown", () => {
    presses += 1;
    frame = 0;
  });
  const bit = (value, index) => Math.floor(value / 2 ** index) % 2;
  const paint = () => {
    if (scrolls) requestAnimationFrame(paint);
    frame += 1;
    if (frame % 2 === 0) return;
    const now = Date.now();
    for (let cell = 0; cell < 40; cell += 1) {
      const isOn = cell < 32 ? bit(now, cell) : bit(presses, cell - 32);
      for (const row of [0, 1]) {
        pen.fillStyle = isOn === row ? "black" : "white";
        pen.fillRect(cell * 16, row * 16, 16, 16);
      }
    }
    if (scrolls) scrollTo(0, (now / 4) % 8000);
  };
  requestAnimationFrame(paint);
</script>`;

/** Measurements of a viewer. */
export interface ViewerTimes {
  /** Milliseconds from the painting of each picture until a viewer can read it. */
  readonly ages: readonly number[];
  /** Milliseconds from each press to the first picture that shows it. */
  readonly answers: readonly number[];
  /** Number of undecodable pictures. */
  readonly undecodable: number;
}

/** Makes a viewer's page decode each picture that it shows. */
export function readClock(page: Page): Promise<void> {
  return page.evaluate(() => {
    const canvas = document.querySelector("canvas");
    if (!canvas) throw new Error("there is no picture");
    const times = { ages: [] as number[], answers: [] as number[], undecodable: 0 };
    const pressedAt: number[] = [];
    let base: number | undefined;
    const read = () => {
      const now = Date.now();
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, 640, 32) ?? { data: [] };
      const isOn = (cell: number, y: number) => (data[(y * 640 + cell * 16 + 8) * 4] ?? 0) > 128;
      let stamp = 0;
      let presses = 0;
      for (let cell = 0; cell < 40; cell += 1) {
        if (isOn(cell, 8) === isOn(cell, 24)) {
          times.undecodable += 1;
          return;
        }
        if (isOn(cell, 8) && cell < 32) stamp += 2 ** cell;
        else if (isOn(cell, 8)) presses += 2 ** (cell - 32);
      }
      times.ages.push((now - stamp) % 2 ** 32);
      base ??= presses;
      while (times.answers.length < presses - base) times.answers.push(now - (pressedAt[times.answers.length] ?? now));
    };
    canvas.addEventListener("mousedown", () => pressedAt.push(Date.now()), true);
    new MutationObserver(read).observe(canvas, { attributeFilter: ["data-sequence"] });
    Object.assign(globalThis, { times });
  });
}

/** Returns the measurements since the last call. */
export function takeViewerTimes(page: Page): Promise<ViewerTimes> {
  return page.evaluate(() => {
    // Reads the global that `readClock` has set.
    const { times } = globalThis as unknown as { times: { ages: number[]; answers: number[]; undecodable: number } };
    const taken = { ...times, ages: times.ages.splice(0), answers: [...times.answers] };
    times.undecodable = 0;
    return taken;
  });
}
