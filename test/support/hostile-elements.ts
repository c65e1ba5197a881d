import { go, goesOn, type HostileCase, short, shortMs, tap, timedOut, titled } from "./hostile-step.ts";

/** Behaviour of elements during a command. */
export const elementCases: readonly HostileCase[] = [
  {
    name: "taps an element that moves, when it stands still",
    steps: [go("/targets.html"), tap("#moving", titled("clicked moving")), goesOn],
  },
  {
    name: "says that an element keeps moving",
    steps: [go("/targets.html"), tap("#restless", timedOut(/keeps moving/), short), goesOn],
  },
  {
    name: "says what an element is covered by",
    steps: [go("/targets.html"), tap("#covered", timedOut(/covered by <div id="cover">/), short), goesOn],
  },
  {
    name: "taps an element when its cover has gone",
    steps: [go("/targets.html"), tap("#uncovered", titled("clicked uncovered")), goesOn],
  },
  {
    name: "says that an element is disabled",
    steps: [go("/targets.html"), tap("#disabled", timedOut(/disabled/), short), goesOn],
  },
  {
    name: "taps an element once it is enabled",
    steps: [go("/targets.html"), tap("#soon", titled("clicked soon")), goesOn],
  },
  {
    name: "says that an element is not visible",
    steps: [go("/targets.html"), tap("#hidden", timedOut(/not visible/), short), goesOn],
  },
  {
    name: "says that an element is not there",
    steps: [go("/targets.html"), tap("#nowhere", timedOut(/no element matches/), short), goesOn],
  },
  {
    name: "notices that an element leaves while it is tapped",
    steps: [
      go("/targets.html"),
      tap("#leaves", { withinMs: shortMs }, short),
      tap("#leaves", timedOut(/no element matches/), short),
      goesOn,
    ],
  },
  {
    name: "reaches into an open shadow root",
    steps: [go("/nested.html"), tap("#in-shadow", titled("clicked in-shadow")), goesOn],
  },
  {
    name: "reaches into a shadow root in a shadow root",
    steps: [go("/nested.html"), tap("#deep", titled("clicked deep")), goesOn],
  },
  {
    name: "reaches into a frame in a frame",
    steps: [go("/nested.html"), tap("#in-frame", titled("clicked in-frame"), {}, ["#outer", "iframe.inner"]), goesOn],
  },
  {
    name: "says that a frame is not there",
    steps: [go("/nested.html"), tap("#in-frame", timedOut(/action\.frame\[0\]/), short, ["#nowhere"]), goesOn],
  },
];
