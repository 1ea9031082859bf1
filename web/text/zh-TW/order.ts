// 「順序」頁的文字。

import type { Words } from "../words.ts";

export const order: Words["order"] = {
  name: "順序",
  title: "光靠注意力，看不見順序",
  lead: "兩個句子用同樣的 token，經過一個隨機權重的小型 Transformer，句尾都加上同一個記號 ⏎。沒有位置編碼也沒有遮罩時，注意力只是把一個集合加總：句尾記號的輸出完全相同，連最後一位數字都一樣。接著打開某個開關看看。",
  first: "第一句",
  second: "第二句",
  presets: "範例",
  encoding: "位置編碼",
  encodings: {
    none: "無",
    sinusoidal: "正弦",
    learned: "學習式絕對位置",
    rope: "RoPE",
    alibi: "ALiBi",
    t5: "T5 偏置",
    kerple: "KERPLE",
  },
  mask: "因果遮罩",
  secondLayer: "第二層",
  lastToken: "最後一個 token 的輸出",
  identical: (count) => `完全相同：${count} 個數字的每個位元都一樣。`,
  different: (largest) => `不同：最多相差 ${largest}。`,
  otherTokens: "這兩句的 token 並不相同，所以差異不能說明順序。",
  difference: "差異",
  explain: "由函式庫的計算圖以 float64 計算，以 float32 顯示。",
  digits: "每一位數字",
  channel: "分量",
  attention: "最後一個 token 的注意力",
  attentionHint: "句尾記號把多少注意力分給每個 token。",
  layerHead: (layer, head) => `第 ${layer} 層，第 ${head} 頭`,
  overview: "一次看完所有組合",
  overviewLead:
    "這兩句的最大差異。只有因果遮罩時，從第二層起就足以分辨：中間的 token 看到的開頭不同，最後一個 token 便從它那裡讀到順序。NoPE 就是這樣知道順序的。",
  variant: (causal, layers) => `${causal ? "因果遮罩" : "無遮罩"}，${layers} 層`,
  same: "完全相同",
};
