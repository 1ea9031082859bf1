// 外框的文字。

import type { Words } from "../words.ts";

export const shell: Words["shell"] = {
  title: "Longhand 實驗室",
  motto: "Transformer 到底能讀多遠？",
  skip: "跳到內容",
  pages: "頁面",
  language: "語言",
  theme: "主題",
  light: "淺色",
  dark: "深色",
  system: "跟隨系統",
  offline: "這裡的一切都由 Longhand 的函式庫在這台電腦上計算，沒有任何資料離開這台電腦。",
  failed: "這個頁面發生錯誤",
  colon: "：",
  opening: "正在開啟頁面……",
};
