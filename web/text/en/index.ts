// What the lab says in English, a file a page.

export { clock } from "./clock.ts";
export { distance } from "./distance.ts";
export { doctor } from "./doctor.ts";
export { extend } from "./extend.ts";
export { lecture } from "./lecture.ts";
export { order } from "./order.ts";
export { runs } from "./runs.ts";
export { shell } from "./shell.ts";
export { train } from "./train.ts";
