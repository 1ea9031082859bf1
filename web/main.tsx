// The lab: pages over src, which computes everything that they show.

import "@preact/signals";
import { render } from "preact";
import { keepAddress } from "./shell/address.ts";
import { later } from "./shell/later.tsx";
import { takeToken } from "./shell/server.ts";
import { type Page, Shell } from "./shell/shell.tsx";

// Each page is a file of its own, fetched when it is opened.
const pages: readonly Page[] = [
  {
    id: "lecture",
    name: (words) => words.lecture.name,
    view: later(async () => (await import("./pages/lecture/lecture.tsx")).Lecture),
  },
  {
    id: "clock",
    name: (words) => words.clock.name,
    view: later(async () => (await import("./pages/clock/clock.tsx")).Clock),
  },
  {
    id: "order",
    name: (words) => words.order.name,
    view: later(async () => (await import("./pages/order/order.tsx")).Order),
  },
  {
    id: "distance",
    name: (words) => words.distance.name,
    view: later(async () => (await import("./pages/distance/distance.tsx")).Distance),
  },
  {
    id: "extend",
    name: (words) => words.extend.name,
    view: later(async () => (await import("./pages/extend/extend.tsx")).Extend),
  },
  {
    id: "train",
    name: (words) => words.train.name,
    view: later(async () => (await import("./pages/train/train.tsx")).Train),
  },
  {
    id: "runs",
    name: (words) => words.runs.name,
    view: later(async () => (await import("./pages/runs/runs.tsx")).Runs),
  },
  {
    id: "doctor",
    name: (words) => words.doctor.name,
    view: later(async () => (await import("./pages/doctor/doctor.tsx")).Doctor),
  },
];

takeToken();
render(<Shell pages={pages} />, document.getElementById("lab")!);
keepAddress();
