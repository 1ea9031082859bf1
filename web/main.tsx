// The lab: pages over src, which computes everything that they show.

import "@preact/signals";
import { render } from "preact";
import { Clock } from "./pages/clock/clock.tsx";
import { Distance } from "./pages/distance/distance.tsx";
import { Extend } from "./pages/extend/extend.tsx";
import { Lecture } from "./pages/lecture/lecture.tsx";
import { Order } from "./pages/order/order.tsx";
import { Runs } from "./pages/runs/runs.tsx";
import { Train } from "./pages/train/train.tsx";
import { keepAddress } from "./shell/address.ts";
import { type Page, Shell } from "./shell/shell.tsx";

const pages: readonly Page[] = [
  { id: "lecture", name: (words) => words.lecture.name, view: Lecture },
  { id: "clock", name: (words) => words.clock.name, view: Clock },
  { id: "order", name: (words) => words.order.name, view: Order },
  { id: "distance", name: (words) => words.distance.name, view: Distance },
  { id: "extend", name: (words) => words.extend.name, view: Extend },
  { id: "train", name: (words) => words.train.name, view: Train },
  { id: "runs", name: (words) => words.runs.name, view: Runs },
];

render(<Shell pages={pages} />, document.getElementById("lab")!);
keepAddress();
