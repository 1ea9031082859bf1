// 「距離」頁的文字。

import type { Words } from "../words.ts";

export const distance: Words["distance"] = {
  name: "距離",
  title: "距離的代價",
  lead: "query 與前面若干 token 的 key 的分數，兩者都用同樣的理想向量：剩下的就只有位置編碼如何看待距離。",
  factor: "縮放倍數",
  reach: "最遠距離",
  read: "讀取距離",
  rotary: "旋轉與正弦編碼",
  rotaryLead:
    "分數是每根指針各一個餘弦的平均；正弦編碼是它的一半，YaRN 則再乘上注意力係數的平方。它緩慢下降並帶有漣漪：較遠的 key 有時分數反而比較近的高。縮放讓指針轉得更慢，曲線便往遠處移。Dynamic 依最遠距離時的頻率繪製。",
  bias: "加在分數上的偏置",
  biasLead:
    "這些數在 softmax 之前加到分數上。ALiBi 和 KERPLE 只會一路下降：ALiBi 以八個頭計，畫出最陡與最平（虛線）的兩個頭，KERPLE 是兩個參數都為 1 的對數核函數。T5 的數是學來的，每個桶子、每個頭各一個，這裡是 longhand-t5 的四個頭。",
  curves: {
    rope: "RoPE（訓練時）",
    linear: "線性內插",
    ntk: "NTK",
    dynamic: "動態 NTK",
    yarn: "YaRN",
    llama3: "Llama 3",
    sinusoidal: "正弦",
    alibi: "ALiBi",
    kerple: "KERPLE",
    t5: "T5（longhand-t5）",
  },
  axes: { distance: "距離", rotary: "分數", bias: "偏置" },
  bucket: "T5 的桶子編號",
  vectors: {
    title: "換成真的向量",
    lead: "取內建模型第一層的一個 query 和一個 key，把 key 一個 token 一個 token 往遠處搬，看進入 softmax 的分數。在第一層，兩者只跟 token 本身（這裡是一個位元組）有關。模型的訓練長度是 256，縮放的倍數用上面設定的。",
    model: "模型",
    query: "query 的字元",
    key: "key 的字元",
    head: "頭",
    score: "分數",
    oneByte: "請輸入一個 ASCII 字元。",
    curves: {
      own: "訓練時",
      linear: "線性內插",
      ntk: "NTK",
      yarn: "YaRN",
      drop: "拿掉位置",
    },
  },
  head: (name, head) => `${name}，第 ${head} 頭`,
  at: (distance) => `距離 ${distance} 時`,
  nothing: "打開一條曲線就能看到。",
};
