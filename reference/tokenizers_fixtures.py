"""Writes test/fixtures/tokenizers/: small tokenizers of every kind, and the ids that the reference libraries give.

Run by hand: python reference/tokenizers_fixtures.py
(sentencepiece 0.2.3, tokenizers 0.23.3, transformers 5.24.0, gguf 0.19.0; the versions are recorded inside).

The small tokenizers are trained here on the lines below: SentencePiece BPE and unigram models with the settings of
LLaMA, Gemma, T5 and others (*.model), byte-level and character BPE and Unigram in tokenizer.json form (*.json).
fixtures.json holds the texts, and for each tokenizer the ids with and without special tokens and the decoded text;
"preTokenizers", by the name that GGUF files use, the ids of byte-level.json's vocabulary under the model's own
expressions, run by tokenizers. llama-cpp.json holds what llama.cpp makes of GGUF files that are written here from the
small tokenizers; it needs node-llama-cpp (NODE_LLAMA_CPP names the folder that holds its node_modules; without it the
recorded file is kept). shared.json holds ids of published tokenizers, which are read from ../shared and from the cache
of fetched models; of a book only a hash. Texts are written by hand; no vocabulary of others is stored.
"""

import hashlib
import io
import json
import os
import pathlib
import struct
import subprocess
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"

import gguf
import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).parent.parent
OUT = ROOT / "test/fixtures/tokenizers"
SHARED = ROOT / "../shared"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "longhand/models"

TEXTS = [
    "",
    "Hello",
    "Hello world",
    " leading and trailing ",
    "   three   spaces   everywhere   ",
    "The clock has many hands; the slowest was never trained.",
    "I'll say it's what they've done, don't they? WE'RE, I'M, He'D, it'ſ",
    "位置編碼讓模型知道字詞的順序。旋轉位置嵌入（RoPE）用角度表示距離，轉得最慢的指針從未走完一圈。",
    "回転位置埋め込みは、ｶﾞｷﾞｸﾞ（半角）と全角ＡＢＣ１２３を区別する。ぱぴぷ",
    "한국어 문장은 띄어쓰기가 있습니다. 위치는 회전합니다!",
    "def rotate(x, angle=0.5):\n    return [x[0] * cos(angle) - x[1]]  # half\n\tif x != 1: pass\n",
    "const θ = base ** (-2 * i / dim); /* π ≈ 3.14159 */ a->b; x<=y && !z || w?.v",
    "emoji: 👍🏽 👩‍👩‍👧‍👦 🤦🏽‍♀️ 🇹🇼 ❤️ 😀😀",
    "tabs\tand\t\ttabs, non-breaking\u00a0space,\u3000ideographic,\u2003em\u200a\u202f\u205fend",
    "line\nline\r\nline\r\rline\n\n\nline \n \n  line\n",
    "\n",
    "\n\n  \n",
    "   ",
    " ",
    "\t",
    "\u0085next line\u0085 \ufeffmark\ufeff \u2028sep\u2029",
    "1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 2024-06-30 ٣٤٥ ½ ² Ⅷ 1234abc",
    "e\u0301te\u0301 \u00e9t\u00e9 n\u0303 \u1e69\u0323 A\u030a \u212b \ufb01ne \ufb03 x\u0300\u0301\u0302y",
    "हिन्दी में मात्राएँ, ไทย ภาษา, العربية ٱلسَّلَامُ, עברית, ქართული, Ελληνικά ΣΊΣΥΦΟΣ, Հայերեն",
    "control \x00\x01\x02\x07\x08\x1b\x7f\x9f characters\x0b\x0c",
    "<s>text</s> <unk> <pad> <|endoftext|>x<|im_start|>user<|im_end|> <|special|> <extra_id_0>",
    "tag <b>bold</b> <sep>x<sep> y <sep>  z<keep>w",
    "WE owe, POWER, sWEet WEb; WE. many hands, manyhands",
    "▁literal▁ ▁▁ underline ▁",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbb abababababab",
    "CamelCaseWord XMLHttpRequest snake_case_word SCREAMING_CASE mixedUP",
    "https://example.org/a/b?c=d&e=%20#f user@example.com C:\\path\\file.txt",
    "“quoted” ‘single’ — dash… ¿qué? ¡sí! « guillemets » 「引號」『雙』（括）",
    "x" * 70 + " " + "é" * 40,
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐷 𠮷野家 🜁 \U0010ffff \ue000",
    "\ufffd � replacement",
    "..........!!!!!??? ---- ==== ++++ $$$ ^^ ~~ `` || << >>",
    "don' t  's ' s 'S 'LL'll 'vE",
    "end without newline   \t ",
    "spaces before digits:\n\n 1. One\n 22  333\t4 \n5\u00a06 \u30007 -  8,9 \n\n ٣ \t½",
]

LINES = """
The position of a word is an angle, and the model reads the difference of two angles.
Every hand of the clock turns at its own speed; the fastest goes round in six tokens, the slowest never comes back.
When the text is longer than anything it was trained on, the slow hands point where they have never pointed before.
One may slow all hands down, or only the slow ones, or change the base so that the fast ones stay as they are.
It's what they've said: don't stretch what isn't stretched. I'll show you; we're done, she'd agree. I'm sure.
IT'S WHAT THEY'VE SAID: DON'T STRETCH. WE'LL SEE.
Attention without positions is a bag of words; the order is lost and the words are all at once.
A window of four thousand tokens is 4096, of eight thousand 8192, of a hundred and twenty-eight thousand 131072.
In 2017 the tables were fixed, in 2018 learned, in 2021 rotated: 10000, 500000, 1000000 are common bases; 3.14159.
def angle(position, pair, base=10000.0, dim=64):
    return position * base ** (-2 * pair / dim)
for (let i = 0; i < n; i++) { total += values[i] * weights[i]; }
if (x != null && x.length > 0) return x[0]; // the first
位置編碼讓模型知道字詞的順序，沒有位置的注意力只是一袋字詞。
旋轉位置嵌入用角度表示距離，轉得最慢的指針從未走完一圈。
文字比訓練時更長，慢的指針就指向從未到過的地方。
位置は角度であり、モデルは二つの角度の差を読む。時計の針はそれぞれの速さで回る。
위치는 각도이고 모델은 두 각도의 차이를 읽는다. 시계의 바늘은 저마다 다른 속도로 돈다.
L'été, les élèves étaient près de la forêt; où est le garçon? Ça va très bien, merci à tous.
Größe, Straße, Übung und Äpfel: die Wörter haben Umlaute. Die Zeiger drehen sich verschieden schnell.
El niño pequeño comió piña; ¿dónde está el baño? ¡Qué sueño! Mañana será otro día.
Положение слова есть угол, и модель читает разность двух углов. Стрелки часов идут с разной скоростью.
👍 👍🏽 😀 ❤️ 🇹🇼 👩‍👩‍👧‍👦 are single signs that people see and many code points that machines read.
Spaces   come   in   runs,  tabs	too, and   the   end   of   a   line  .
(a + b) * (c - d) / e == f; a <= b; a >= c; a && b || !c; x->y; p::q; #include <cmath>; $HOME; 50%
"quoted", 'single', [brackets], {braces}, <tags>, `ticks`, ~tilde~, ^caret^, |bar|, \\backslash\\, @at, #hash, under_score
the the the and and and of of to to in in a a is is that that it it was was for for on on are are as as with with
""".strip("\n").split("\n")


def ids_of(encode, decode=None):
    """Ids of every text with and without special tokens, and the text decoded from the latter."""
    out = {"with": [encode(text, True) for text in TEXTS], "without": [encode(text, False) for text in TEXTS]}
    if decode is not None:
        out["decoded"] = [decode(ids) for ids in out["without"]]
    return out


# SentencePiece ------------------------------------------------------------------------------------------------------


def fold_rules():
    """A handful of NFKC's rules and nmt's white space, so that the table stays small: the real one has 240 kB."""
    import unicodedata

    rules = {}
    for code in [*range(0xFF01, 0xFF5F), *range(0xFB00, 0xFB05), 0x212B, 0x2026, 0xB2, 0xBD, 0x2167, *range(0xFF66, 0xFF9E)]:
        rules[chr(code)] = unicodedata.normalize("NFKC", chr(code))
    for base in "aeiounAEIOUN":
        for mark in "\u0300\u0301\u0302\u0303\u0308":
            composed = unicodedata.normalize("NFC", base + mark)
            if len(composed) == 1:
                rules[base + mark] = composed
    for base in range(0xFF76, 0xFF85):
        rules[chr(base) + "\uff9e"] = unicodedata.normalize("NFKC", chr(base) + "\uff9e")
    for code in [0x09, 0x0A, 0x0C, 0x0D, 0x85, 0xA0, 0x2003, 0x200A, 0x202F, 0x205F, 0x3000, 0x2028, 0x2029, 0xFEFF]:
        rules[chr(code)] = " "
    for code in [*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x9F]:
        rules[chr(code)] = ""
    rows = []
    for source, target in sorted(rules.items()):
        hexed = lambda text: " ".join(f"{ord(c):X}" for c in text)
        rows.append(f"{hexed(source)}\t{hexed(target)}")
    return "\n".join(rows) + "\n"


def train_sentencepiece(name, **settings):
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        if settings.pop("fold", False):
            rules = pathlib.Path(folder) / "rules.tsv"
            rules.write_text(fold_rules(), encoding="utf-8")
            settings["normalization_rule_tsv"] = str(rules)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES * 3), model_writer=model, character_coverage=0.98, minloglevel=2,
            num_threads=1, train_extremely_large_corpus=False, self_test_sample_size=0, **settings,
        )
    (OUT / f"{name}.model").write_bytes(model.getvalue())
    return model.getvalue()


def sentencepiece_fixture(blob, add_bos, add_eos):
    processor = sentencepiece.SentencePieceProcessor(model_proto=blob)

    def encode(text, special):
        return processor.encode(text, add_bos=add_bos and special, add_eos=add_eos and special)

    return {"addBos": add_bos, "addEos": add_eos, **ids_of(encode, processor.decode)}


def sentencepiece_fixtures():
    bpe = dict(model_type="bpe", vocab_size=700, byte_fallback=True)
    spm = {
        # LLaMA: text as it is, a dummy space, bytes for what is unknown.
        "llama": (dict(bpe, normalization_rule_name="identity", remove_extra_whitespaces=False,
                       user_defined_symbols=["<sep>", "<keep>"], split_digits=True,
                       allow_whitespace_only_pieces=True), True, False),
        # Gemma: no dummy space, runs of spaces and line feeds as symbols.
        "gemma": (dict(bpe, normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False,
                       user_defined_symbols=["\n", "\n\n", "▁▁", "▁▁▁", "▁▁▁▁", "\t", "<b>", "</b>"], split_digits=True), True, False),
        # T5: replacement rules, white space collapsed, no bytes.
        "t5": (dict(model_type="unigram", vocab_size=400, fold=True, bos_id=-1, pad_id=0, eos_id=1, unk_id=2,
                    user_defined_symbols=["<sep>"], control_symbols=["<|special|>"]), False, True),
        # Unigram with bytes, text as it is.
        "unigram-bytes": (dict(model_type="unigram", vocab_size=650, byte_fallback=True, normalization_rule_name="identity",
                               remove_extra_whitespaces=False, user_defined_symbols=["<sep>", "<b>"]), True, False),
        # Spaces behind words; BPE without bytes.
        "suffix": (dict(model_type="bpe", vocab_size=450, treat_whitespace_as_suffix=True, fold=True), True, True),
    }
    return {name: sentencepiece_fixture(train_sentencepiece(name, **settings), bos, eos)
            for name, (settings, bos, eos) in spm.items()}


# tokenizer.json -----------------------------------------------------------------------------------------------------


def json_fixture(tokenizer):
    def encode(text, special):
        return tokenizer.encode(text, add_special_tokens=special).ids

    out = ids_of(encode, lambda ids: tokenizer.decode(ids, skip_special_tokens=True))
    return out


def save(tokenizer, name):
    (OUT / f"{name}.json").write_text(tokenizer.to_str(pretty=False), encoding="utf-8")


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BY_CASE = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+%s|" + r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*%s"
           r"|%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = BY_CASE % (CONTRACTION, CONTRACTION, r"\p{N}{1,3}")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
             r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def isolated(*expressions):
    return [pre_tokenizers.Split(Regex(expression), "isolated") for expression in expressions]


def bytes_after(*steps):
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
KIMI_UPPER, KIMI_LOWER = UPPER[:-1] + r"&&[^\p{Han}]]", LOWER[:-1] + r"&&[^\p{Han}]]"
# By the name in GGUF files: the pre-tokenizer of the models' own tokenizer.json.
PRE = {
    "gpt-2": GPT2,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "starcoder": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "falcon": pre_tokenizers.Sequence(
        [*isolated(r"[\p{P}\$\+<=>\^~\|`]+"), *isolated(
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
         *isolated("[0-9][0-9][0-9]"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
    "llama-bpe": bytes_after(*isolated(LLAMA3)),
    "qwen2": bytes_after(*isolated(QWEN2)),
    "qwen35": bytes_after(*isolated(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")),
    "deepseek-v3": bytes_after(*isolated(r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3)),
    "gpt-4o": bytes_after(*isolated(GPT4O)),
    "tekken": bytes_after(*isolated(BY_CASE % ("", "", r"\p{N}"))),
    "tiny_aya": bytes_after(*isolated(r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O)),
    "superbpe": bytes_after(*isolated(r"\p{N}+", r"(?=(\d{3})+(?!\d))")),
    "bloom": bytes_after(*isolated(r" ?[^(\s|[.,!?…。，、।۔،])]+")),
    "seed-coder": bytes_after(*isolated(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")),
    "bailingmoe": bytes_after(*isolated(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")),
    "exaone-moe": bytes_after(*isolated(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")),
    "jais-2": bytes_after(*isolated(
        LLAMA3[: LLAMA3.index(r"|\s+(?!\S)")] + "".join(rf"|\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))
        + r"|\s{1,2}(?!\S)|\s{1}")),
    "kimi-k2": bytes_after(*isolated(
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?" + KIMI_UPPER + "*" + KIMI_LOWER + "+" + CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?" + KIMI_UPPER + "+" + KIMI_LOWER + "*" + CONTRACTION
        + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")),
}
# Names whose vocabularies are of characters, not of bytes; gemma4 is a model of its own as well.
OVER_CHARACTERS = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"}
IGNORE_MERGES = {"llama-bpe", "tekken"}


def json_fixtures():
    fixtures, pre = {}, {}
    # Merges over whole lines, so that every cut that a pre-tokenizer makes or fails to make shows in the ids.
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=1100, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, max_token_length=9,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    byte_level.train_from_iterator(LINES * 2, trainer)
    byte_level.add_tokens([AddedToken("<keep>", normalized=False), AddedToken("  ", normalized=True)])
    byte_level.decoder = decoders.ByteLevel()
    byte_level.pre_tokenizer = GPT2
    save(byte_level, "byte-level")
    fixtures["byte-level"] = json_fixture(byte_level)
    for name, step in PRE.items():
        byte_level.pre_tokenizer = step
        described = json.loads(byte_level.to_str())
        described["model"]["ignore_merges"] = name in IGNORE_MERGES
        variant = Tokenizer.from_str(json.dumps(described))
        pre[name] = {"step": json.loads(byte_level.to_str())["pre_tokenizer"],
                     "without": [variant.encode(text, add_special_tokens=False).ids for text in TEXTS]}

    # LLaMA's conversion of a SentencePiece BPE: merges over characters, bytes for what is unknown, a template.
    characters = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    characters.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, limit_alphabet=150, max_token_length=8,
                                  special_tokens=["<unk>", "<s>", "</s>", *[f"<0x{b:02X}>" for b in range(256)]])
    characters.train_from_iterator(LINES, trainer)
    described = json.loads(characters.to_str())
    described["added_tokens"] = [token for token in described["added_tokens"] if not token["content"].startswith("<0x")]
    characters = Tokenizer.from_str(json.dumps(described))
    characters.add_tokens([AddedToken("<sep>", normalized=False, lstrip=True, rstrip=True),
                           AddedToken("WE", normalized=False, single_word=True), AddedToken("many hands", normalized=True)])
    characters.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", characters.token_to_id("<s>"))])
    characters.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                            decoders.Strip(" ", 1, 0)])
    save(characters, "characters")
    fixtures["characters"] = json_fixture(characters)

    # T5's form: a precompiled table, Metaspace, Unigram, EOS behind.
    import base64
    proto = (OUT / "t5.model").read_bytes()
    from sentencepiece import sentencepiece_model_pb2
    model = sentencepiece_model_pb2.ModelProto.FromString(proto)
    unigram = Tokenizer(models.Unigram([(piece.piece, piece.score) for piece in model.pieces], unk_id=2, byte_fallback=False))
    unigram.normalizer = normalizers.Sequence([
        normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap),
        normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    unigram.decoder = decoders.Metaspace(prepend_scheme="always")
    unigram.add_special_tokens(["<pad>", "</s>", "<unk>"])
    unigram.add_special_tokens([AddedToken("<extra_id_0>", lstrip=True, rstrip=True)])
    unigram.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    save(unigram, "unigram")
    fixtures["unigram"] = json_fixture(unigram)

    # Parts that others use: lowering, stripping, accents, whitespace and punctuation words, prefixes and suffixes.
    words = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##", end_of_word_suffix="</w>", fuse_unk=False))
    words.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(),
                                             normalizers.Strip(), normalizers.NFKC()])
    words.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"),
        pre_tokenizers.Digits(individual_digits=False)])
    trainer = trainers.BpeTrainer(vocab_size=500, show_progress=False, special_tokens=["[UNK]"], limit_alphabet=120,
                                  continuing_subword_prefix="##", end_of_word_suffix="</w>")
    words.train_from_iterator(LINES, trainer)
    save(words, "words")
    out = json_fixture(words)
    del out["decoded"]
    fixtures["words"] = out
    return fixtures, pre, byte_level


# GGUF through llama.cpp -----------------------------------------------------------------------------------------------


SCRIPT = """
import { getLlama, LlamaLogLevel } from "node-llama-cpp";
import { readFileSync, writeFileSync } from "node:fs";
const { jobs } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.disabled });
const out = [];
for (const { path, texts, special } of jobs) {
  try {
    const model = await llama.loadModel({ modelPath: path, vocabOnly: true });
    out.push(texts.map((text) => model.tokenize(text, special)));
    await model.dispose();
  } catch (error) {
    out.push(String(error.message).slice(0, 100));
  }
}
writeFileSync(process.argv[3], JSON.stringify(out));
process.exit(0);
"""


def llama_cpp(jobs):
    folder = os.environ.get("NODE_LLAMA_CPP")
    if folder is None:
        return None
    script = pathlib.Path(folder) / "tokenize-fixtures.mjs"
    script.write_text(SCRIPT)
    asked, answered = script.with_name("asked.json"), script.with_name("answered.json")
    asked.write_text(json.dumps({"jobs": jobs}))
    done = subprocess.run(["node", str(script), str(asked), str(answered)], capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(answered.read_text())


def write_gguf(path, model, tokens, types, scores=None, merges=None, **keys):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_head_count(1)
    writer.add_feed_forward_length(32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if scores is not None:
        writer.add_token_scores(scores)
    if merges is not None:
        writer.add_token_merges(merges)
    for key, value in keys.items():
        name = f"tokenizer.ggml.{key}"
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, bytes):
            writer.add_array(name, value)
        else:
            writer.add_string(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def json_gguf(described):
    """Tokens, classes and merges of a tokenizer.json, as the converters write them."""
    vocab = described["model"]["vocab"]
    size = max([*vocab.values(), *[token["id"] for token in described["added_tokens"]]]) + 1
    tokens, types = [""] * size, [1] * size
    for text, token in vocab.items():
        tokens[token] = text
        types[token] = 6 if len(text) == 6 and text.startswith("<0x") else 1
    for token in described["added_tokens"]:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = 3 if token["special"] else 4
    return tokens, types, [" ".join(merge) for merge in described["model"]["merges"]]


def llama_cpp_fixtures(names):
    byte_level = json_gguf(json.loads((OUT / "byte-level.json").read_text()))
    characters = json_gguf(json.loads((OUT / "characters.json").read_text()))
    from sentencepiece import sentencepiece_model_pb2
    with tempfile.TemporaryDirectory() as folder:
        jobs, keys = [], []
        for name in names:
            path = f"{folder}/{name}.gguf"
            tokens, types, merges = characters if name in OVER_CHARACTERS else byte_level
            write_gguf(path, "gemma4" if name == "gemma4" else "gpt2", tokens, types, merges=merges, pre=name,
                       bos_token_id=0, eos_token_id=0, add_bos_token=False)
            for special in (True, False):
                jobs.append({"path": path, "texts": TEXTS, "special": special})
                keys.append((name, special))
        for name in ("llama", "gemma", "t5"):
            model = sentencepiece_model_pb2.ModelProto.FromString((OUT / f"{name}.model").read_bytes())
            spec = model.normalizer_spec
            pieces = [piece.piece for piece in model.pieces]
            # Converters write user-defined symbols as the text that they match.
            pieces = [text.replace("▁", " ") if piece.type == 4 else text for text, piece in zip(pieces, model.pieces)]
            settings = dict(add_space_prefix=spec.add_dummy_prefix, add_bos_token=False, add_eos_token=False,
                            unknown_token_id=model.trainer_spec.unk_id, eos_token_id=model.trainer_spec.eos_id)
            if name == "t5":
                settings |= dict(remove_extra_whitespaces=spec.remove_extra_whitespaces,
                                 precompiled_charsmap=spec.precompiled_charsmap)
            else:
                settings |= dict(bos_token_id=model.trainer_spec.bos_id)
            path = f"{folder}/{name}.gguf"
            write_gguf(path, "t5" if name == "t5" else "llama", pieces, [piece.type for piece in model.pieces],
                       scores=[piece.score for piece in model.pieces], **settings)
            for special in (True, False):
                jobs.append({"path": path, "texts": TEXTS, "special": special})
                keys.append((f"sentencepiece {name}", special))
        results = llama_cpp(jobs)
    if results is None:
        return None
    out = {}
    for (name, special), ids in zip(keys, results):
        out.setdefault(name, {})["parseSpecial" if special else "plain"] = ids
    # Most names are aliases: the ids stand with the first of them.
    first = {}
    for name, value in out.items():
        key = json.dumps(value)
        if key in first:
            out[name] = {"sameAs": first[key]}
        first.setdefault(key, name)
    return out


# Published tokenizers -------------------------------------------------------------------------------------------------


def digest(ids):
    return {"count": len(ids), "sha256": hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()}


def books():
    """The first 200,000 characters of each book, in pieces that end at an empty line."""
    out = {}
    for path in sorted((SHARED / "corpora/books").glob("*.txt")):
        text = path.read_bytes()[:400_000].decode("utf-8", "ignore")[:200_000].replace("\r\n", "\n")
        out[path.name] = text[: text.rindex("\n\n")]
    return out


def with_books(encode, decode=None):
    out = ids_of(encode, decode)
    out["books"] = {}
    for name, text in books().items():
        ids = []
        for paragraph in text.split("\n\n"):
            ids += encode(paragraph, False)
        out["books"][name] = digest(ids)
    return out


def run_c(path, vocab_size):
    """The tokenizer of llama2.c's run.c, loop for loop."""
    blob = path.read_bytes()
    at, vocab, scores = 4, [], []
    for _ in range(vocab_size):
        score, length = struct.unpack_from("<fi", blob, at)
        vocab.append(blob[at + 8 : at + 8 + length])
        scores.append(score)
        at += 8 + length
    lookup = {text: token for token, text in reversed(list(enumerate(vocab)))}

    def encode(text, special):
        tokens = [1] if special else []
        # C strings end at the first zero; here it is a character like others.
        if text != "":
            tokens.append(lookup[b" "])
        for character in text:
            raw = character.encode()
            tokens += [lookup[raw]] if raw in lookup else [byte + 3 for byte in raw]
        while True:
            best, where, token = -1e10, -1, -1
            for i in range(len(tokens) - 1):
                merged = lookup.get(vocab[tokens[i]] + vocab[tokens[i + 1]])
                if merged is not None and scores[merged] > best:
                    best, where, token = scores[merged], i, merged
            if where == -1:
                return tokens
            tokens[where : where + 2] = [token]

    return encode


def shared_fixtures():
    out = {}
    for name in ("t5-tokenizer.json", "gpt-neox-20B_tokenizer.json"):
        tokenizer = Tokenizer.from_file(str(SHARED / "tokenizers" / name))
        out[name] = with_books(lambda text, special: tokenizer.encode(text, add_special_tokens=special).ids,
                               lambda ids: tokenizer.decode(ids, skip_special_tokens=True))
    for name, bos, eos in (("llama2-tokenizer.model", True, False), ("t5-spiece.model", False, True)):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(SHARED / "tokenizers" / name))
        out[name] = with_books(
            lambda text, special: processor.encode(text, add_bos=bos and special, add_eos=eos and special), processor.decode)
    out["tok512.bin"] = ids_of(run_c(SHARED / "models/stories260K/tok512.bin", 512))
    for name in ("SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"):
        if not (CACHE / name).exists():
            continue
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(CACHE), gguf_file=name)
        if name.startswith("SmolLM2"):
            # transformers reads tokenizer.ggml.pre of no file: the model's own tokenizer.json cuts at digits first.
            tokenizer.backend_tokenizer.pre_tokenizer = PRE["smollm"]
        out[name] = with_books(lambda text, special: tokenizer.encode(text, add_special_tokens=special),
                               lambda ids: tokenizer.decode(ids, skip_special_tokens=True))
        results = llama_cpp([{"path": str(CACHE / name), "texts": TEXTS, "special": special} for special in (True, False)])
        if results is not None:
            out[name]["llamaCpp"] = {"parseSpecial": results[0], "plain": results[1]}
        # Whole: a paragraph alone never has an empty line before a digit.
        whole = books()["se-gibbon.txt"]
        ids = tokenizer.encode(whole, add_special_tokens=False)
        results = llama_cpp([{"path": str(CACHE / name), "texts": [whole], "special": False}])
        assert results is None or results[0][0] == ids, name
        out[name]["wholeGibbon"] = digest(ids)
    return out


def write(name, fixtures):
    def compact(value, depth=0):
        if depth < 3 and isinstance(value, dict):
            inner = ",\n".join(json.dumps(key) + ": " + compact(one, depth + 1) for key, one in value.items())
            return "{\n" + inner + "\n}"
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))

    head = {
        "generator": "reference/tokenizers_fixtures.py",
        "versions": {"sentencepiece": sentencepiece.__version__, "tokenizers": tokenizers.__version__,
                     "transformers": transformers.__version__, "gguf": "0.19.0", "node-llama-cpp": "3.21.1"},
    }
    (OUT / name).write_text(compact({**head, **fixtures}) + "\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    names = json.loads((OUT / "pre-tokenizer-names.json").read_text())
    spm = sentencepiece_fixtures()
    jsons, pre, _ = json_fixtures()
    write("fixtures.json", {"texts": TEXTS, "sentencepiece": spm, "json": jsons, "preTokenizers": pre})
    recorded = llama_cpp_fixtures(names)
    if recorded is not None:
        write("llama-cpp.json", {"tokenizers": recorded})
    write("shared.json", {"tokenizers": shared_fixtures()})


if __name__ == "__main__":
    main()
