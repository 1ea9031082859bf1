// 實驗室的正體中文（台灣用語），一頁一個檔案。

export { clock } from "./clock.ts";
export { distance } from "./distance.ts";
export { doctor } from "./doctor.ts";
export { extend } from "./extend.ts";
export { lecture } from "./lecture.ts";
export { order } from "./order.ts";
export { runs } from "./runs.ts";
export { shell } from "./shell.ts";
export { train } from "./train.ts";
