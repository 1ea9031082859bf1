// The verdict's sentences, and the reasons why a strategy was left out, in Traditional Chinese as written in Taiwan. They
// are translated sentence by sentence, so that both languages say the same, whatever decides what is said; a sentence
// without a translation stays in English (a test holds that every sentence has one).

type Rule = readonly [pattern: RegExp, translate: (...groups: string[]) => string];

const count = "[\\d,]+";
const nats = "-?[\\d.]+ nats(?: \\(-?[\\d.]+ to -?[\\d.]+\\))?";

function rule(pattern: string, translate: (...groups: string[]) => string): Rule {
  const source = pattern.replaceAll("{n}", `(${count})`).replaceAll("{nats}", `(${nats})`).replaceAll("{s}", "(.+)");
  return [new RegExp(`^${source}$`, "s"), translate];
}

const rules: readonly Rule[] = [
  rule(
    "One window gives no interval, so nothing can be called better or worse; more --windows, or more text, do that\\.",
    () => "只有一個視窗，沒有信賴區間，分不出好壞；請用更多 --windows 或更多文字。",
  ),
  rule(
    "Nothing beats simply forgetting \\(the last {n} tokens\\)(; {s} ties? with it)?: keep the last {n} tokens, and leave the positions alone\\.",
    (n, _, tied) =>
      `沒有策略勝過直接遺忘（只看最後 ${n} 個 token）${tied === undefined ? "" : `；${list(tied)} 與它平手`}：保留最後 ${n} 個 token，不要動位置編碼。`,
  ),
  rule(
    "{s} ties with the best beyond {n}; (.+)\\.",
    (s, n, rest) => `超過 ${n} 之後 ${s} 與最佳者平手；${cost(rest)}。`,
  ),
  rule(
    "(.+); (.+), and is {nats} behind {s} beyond {n}\\.",
    (first, rest, x, best, n) => `${reach(first)}；${cost(rest)}；超過 ${n} 之後比 ${best} 差 ${interval(x)}。`,
  ),
  // Before the sentence about a strategy, which it would also be.
  rule(
    "Unscaled, the model does no better than forgetting \\(a tie\\)\\.",
    () => "不縮放時，模型不比直接遺忘好（平手）。",
  ),
  rule("{s} (?:does|do) no better than forgetting \\(a tie\\)\\.", (s) => `${list(s)} 不比直接遺忘好（平手）。`),
  rule(
    "{s} loses to simply forgetting \\(the last {n} tokens\\) by {nats}\\.",
    (s, n, x) => `${s} 輸給直接遺忘（只看最後 ${n} 個 token）${interval(x)}。`,
  ),
  rule(
    "Unscaled, the model does not read past {n}; beyond {n} it loses to forgetting by {nats}\\.",
    (n, _, x) => `不縮放時，模型讀不過 ${n} 個 token；超過 ${n} 之後輸給直接遺忘 ${interval(x)}。`,
  ),
  rule(
    "Unscaled, the model reads to {n}; beyond {n} it loses to forgetting by {nats}\\.",
    (to, n, x) => `不縮放時，模型可讀到 ${to} 個 token；超過 ${n} 之後輸給直接遺忘 ${interval(x)}。`,
  ),
  rule(
    "The file does not say at which length the model was trained, so no strategy can be called an extension\\.",
    () => "檔案沒有寫訓練長度，所以沒有策略能稱為延伸。",
  ),
  rule(
    "All {n} tokens are within the trained length: there is nothing to extend\\.",
    (n) => `全部 ${n} 個 token 都在訓練長度以內，無須延伸。`,
  ),
  rule("{s} ties with the unscaled model\\.", (s) => `${s} 與不縮放的模型平手。`),
  rule(
    "{s} is {nats} (better|worse) than the unscaled model\\.",
    (s, x, which) => `${s} 比不縮放的模型${which === "better" ? "好" : "差"} ${interval(x)}。`,
  ),
  rule(
    "No strategy finds a passkey at any length: this model does not answer such questions\\.",
    () => "沒有策略在任何長度找到通關密語（passkey）：這個模型不會回答這類問題。",
  ),
  rule(
    "Passkeys found at {n}: {s}\\.",
    (n, all) =>
      `在 ${n} 個 token 找到的通關密語（passkey）：${all.replace(/(\d+) of (\d+)(, |$)/g, (_, found, of, next) => `${found}／${of}${next === "" ? "" : "、"}`)}。`,
  ),
  rule("{s} gave losses that are no numbers: (.+)", (s, error) => `${s} 的損失不是數字：${error}`),
  rule(
    "The windowed baseline was not run, so nothing here says whether forgetting would do as well\\.",
    () => "沒有跑只看最後一段的基準，所以無從得知直接遺忘是否一樣好。",
  ),
  // Last, since it takes every sentence of two halves.
  rule("(.+); (.+)\\.", (first, rest) => `${reach(first)}；${cost(rest)}。`),
];

const reaches: readonly Rule[] = [
  rule(
    "{s} beats forgetting, but reads no length beyond {n} as well as that one",
    (s, n) => `${s} 勝過直接遺忘，但超過 ${n} 的長度都讀得不如 ${n} 以內`,
  ),
  rule("{s} reads to {n} of {n} tokens", (s, to, of) => `${s} 可讀到 ${to} 個 token（目標 ${of}）`),
  rule("{s} reads to {n} tokens", (s, to) => `${s} 可讀到 ${to} 個 token`),
];

const costs: readonly Rule[] = [
  rule("it is the model as it is", () => "就是原本的模型"),
  rule("it costs {nats} within {n}", (x, n) => `在 ${n} 以內的代價是 ${interval(x)}`),
  rule("it gains {nats} within {n}", (x, n) => `在 ${n} 以內反而改善 ${interval(x)}`),
  rule("it costs nothing within {n}", (n) => `在 ${n} 以內沒有代價`),
  rule("what it costs within {n} is a tie with nothing", (n) => `在 ${n} 以內的代價與零平手`),
];

const reasons: readonly Rule[] = [
  rule(
    "the model has (\\S+) learned positions and nothing to put at a later one",
    (n) => `模型只有 ${n} 個學得的位置，之後沒有東西可放`,
  ),
  rule("they scale rotary angles, and the model has {s}", (s) => `這些策略縮放旋轉角度，而模型的位置編碼是：${s}`),
  rule("the file does not say at which length the model was trained", () => "檔案沒有寫訓練長度"),
  rule(
    "the target, (\\S+) tokens, is within the trained length of (\\S+)",
    (target, trained) => `目標 ${target} 個 token 在訓練長度 ${trained} 以內`,
  ),
  rule(
    "it would turn channels that stood still in training \\(proportional rotary positions\\)",
    () => "會轉動訓練時靜止的通道（proportional 旋轉位置）",
  ),
  rule("close to yarn; --strategies all runs it", () => "與 yarn 相近；--strategies all 會執行"),
  rule(
    "a table for each prefix takes about nine passes; --strategies all runs it",
    () => "每個前綴各用一張表，約需九次計算；--strategies all 會執行",
  ),
  rule("the checkpoint carries no long and short factors", () => "模型檔沒有 long 與 short 係數"),
  rule("it moves rotary positions, and the model has {s}", (s) => `這個策略搬動旋轉位置，而模型的位置編碼是：${s}`),
  rule("every rotary layer sees a window only, and no key is far", () => "每個旋轉層都只看一個視窗，沒有距離遠的 key"),
  rule(
    "it takes the weights into memory a second time and a pass is slower; --strategies all runs it",
    () => "權重要在記憶體裡再放一份，計算也比較慢；--strategies all 會執行",
  ),
  // Of run folders that are older than Self-Extend here.
  rule(
    "a key is rotated twice, for near and for far queries, and the graph rotates each key once",
    () => "每個 key 要為近、遠兩種 query 各轉一次，而計算圖只轉一次",
  ),
  rule(
    "only of use to a model that was trained on without positions; --strategies all runs it",
    () => "只對拿掉位置後再訓練過的模型有用；--strategies all 會執行",
  ),
  rule(
    "the target is within the trained length, or that is unknown: there is nothing to forget",
    () => "目標在訓練長度以內，或訓練長度不明：沒有可遺忘的",
  ),
];

const longest = 2000;

/** A verdict's sentence; null where there is no translation. */
export function verdictInChinese(sentence: string): string | null {
  return apply(rules, sentence);
}

/** Why a strategy was not run; null where there is no translation. */
export function reasonInChinese(why: string): string | null {
  return apply(reasons, why);
}

function apply(all: readonly Rule[], text: string): string | null {
  // A stranger's text that our patterns would take long over.
  if (text.length > longest) return null;
  for (const [pattern, translate] of all) {
    const match = pattern.exec(text);
    if (match === null) continue;
    try {
      return translate(...(match.slice(1) as string[]));
    } catch (error) {
      if (!(error instanceof Untranslated)) throw error;
    }
  }
  return null;
}

/** A half of a sentence that no rule knows: the whole has no translation by this rule. */
class Untranslated extends Error {}

function reach(text: string): string {
  return half(reaches, text);
}

function cost(text: string): string {
  return half(costs, text);
}

function half(all: readonly Rule[], text: string): string {
  const translated = apply(all, text);
  if (translated === null) throw new Untranslated(text);
  return translated;
}

/** "a, b and c" */
function list(names: string): string {
  return names.replace(/ and (?=[^,]*$)/, ", ").replaceAll(", ", "、");
}

function interval(text: string): string {
  return text.replace(/ \((\S+) to (\S+)\)/, "（$1 至 $2）");
}
