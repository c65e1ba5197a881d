import { go, goesOn, type HostileCase, short, shortMs, tap, timedOut, titled } from "./hostile-step.ts";

/** Behaviour of elements during a command. */
export const elementCases: readonly HostileCase[] = [
  {
    name: "taps a moving element once it stops",
    steps: [go("/targets.html"), tap("#moving", titled("clicked moving")), goesOn],
  },
  {
    name: "reports an element that keeps moving",
    steps: [go("/targets.html"), tap("#restless", timedOut(/keeps moving/), short), goesOn],
  },
  {
    name: "taps an element once its cover is removed",
    steps: [go("/targets.html"), tap("#uncovered", titled("clicked uncovered")), goesOn],
  },
  {
    name: "taps an element once it is enabled",
    steps: [go("/targets.html"), tap("#soon", titled("clicked soon")), goesOn],
  },
  {
    name: "reports an element that is removed during a tap",
    steps: [
      go("/targets.html"),
      tap("#leaves", { withinMs: shortMs }, short),
      tap("#leaves", timedOut(/no element matches/), short),
      goesOn,
    ],
  },
  {
    name: "finds an element in nested shadow roots",
    steps: [go("/nested.html"), tap("#deep", titled("clicked deep")), goesOn],
  },
  {
    name: "finds an element in nested frames",
    steps: [go("/nested.html"), tap("#in-frame", titled("clicked in-frame"), {}, ["#outer", "iframe.inner"]), goesOn],
  },
  {
    name: "reports a missing frame",
    steps: [go("/nested.html"), tap("#in-frame", timedOut(/action\.frame\[0\]/), short, ["#nowhere"]), goesOn],
  },
];

/** More of these cases, for long test runs. The tests in driver/elements cover the same causes. */
export const longElementCases: readonly HostileCase[] = [
  {
    name: "reports what covers an element",
    steps: [go("/targets.html"), tap("#covered", timedOut(/covered by <div id="cover">/), short), goesOn],
  },
  {
    name: "reports a disabled element",
    steps: [go("/targets.html"), tap("#disabled", timedOut(/disabled/), short), goesOn],
  },
  {
    name: "reports an invisible element",
    steps: [go("/targets.html"), tap("#hidden", timedOut(/not visible/), short), goesOn],
  },
  {
    name: "reports a missing element",
    steps: [go("/targets.html"), tap("#nowhere", timedOut(/no element matches/), short), goesOn],
  },
  {
    name: "finds an element in an open shadow root",
    steps: [go("/nested.html"), tap("#in-shadow", titled("clicked in-shadow")), goesOn],
  },
];
