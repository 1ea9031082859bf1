// The style of the page, light and dark, for screens, phones and paper.

import { chartStyle, chartVariables } from "./chart.ts";

const light = `${chartVariables("light")};--good:#0d6b43;--bad:#a5281b;--soft-paper:#f5f6f8;--notice:#fff4d6;--heat:13 115 72`;
const dark = `${chartVariables("dark")};--good:#55d19d;--bad:#ff9180;--soft-paper:#1c2229;--notice:#3a2f10;--heat:85 209 157`;

const heat = Array.from({ length: 11 }, (_, i) => `.h${i}{background:rgb(var(--heat)/${(0.045 * i).toFixed(3)})}`).join(
  "",
);

export const pageStyle: string = `
:root{color-scheme:light dark;${light}}
@media screen and (prefers-color-scheme:dark){:root{${dark}}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,"Noto Sans TC","PingFang TC","Microsoft JhengHei",sans-serif}
.switch{position:absolute;opacity:0;width:1px;height:1px}
.bar{display:flex;justify-content:flex-end;gap:.5rem;max-width:1120px;margin:0 auto;padding:.8rem 1rem 0}
.bar label{padding:.15rem .7rem;border:1px solid var(--line);border-radius:1rem;cursor:pointer;font-size:.9rem}
#language-en:checked~.bar label[for=language-en],#language-zh:checked~.bar label[for=language-zh]{background:var(--ink);color:var(--paper);border-color:var(--ink)}
#language-en:focus-visible~.bar label[for=language-en],#language-zh:focus-visible~.bar label[for=language-zh]{outline:3px solid var(--mark);outline-offset:2px}
#language-en:checked~* .zh,#language-zh:checked~* .en{display:none}
main,footer{max-width:1120px;margin:0 auto;padding:0 1rem}
h1{font-size:1.9rem;line-height:1.2;margin:.6rem 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1.35rem;margin:2.2rem 0 .6rem;overflow-wrap:anywhere}h3{font-size:1.12rem;margin:1.8rem 0 .5rem}
h2 small{font-size:.85rem;font-weight:400;color:var(--soft)}
.run+.run{border-top:2px solid var(--line);margin-top:3rem}
a{color:inherit}p,li{max-width:78ch;overflow-wrap:anywhere}
.facts-line{color:var(--soft);margin:.2rem 0}
.lead{font-size:1.2rem;font-weight:600;margin:.3rem 0 .6rem}.verdict{margin:.3rem 0;padding-left:1.2rem}
.notice{background:var(--notice);border-left:4px solid var(--mark);padding:.5rem .8rem;margin:.8rem 0}
.note,footer{color:var(--soft);font-size:.88rem}footer{padding-bottom:2rem;margin-top:2.5rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:1.2rem 1.6rem}
figure{margin:0;min-width:0;max-width:620px}figcaption{font-weight:600;margin-bottom:.2rem}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.2rem;padding:0;margin:.8rem 0;font-size:.92rem}
.sample{width:36px;height:12px;vertical-align:middle}
.scroll{overflow-x:auto;margin:.4rem 0}.scroll:focus-visible{outline:3px solid var(--mark)}
table{border-collapse:collapse;font-size:.9rem}caption{text-align:left;color:var(--soft);font-size:.85rem;padding:.2rem 0;max-width:min(78ch,calc(100vw - 2rem))}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{vertical-align:bottom;border-bottom:1.5px solid var(--soft);font-weight:600}
tbody th{font-weight:500}.summary thead th{min-width:5.6rem}.summary tbody th{white-space:nowrap;max-width:24rem;overflow:hidden;text-overflow:ellipsis}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.number small{display:block;color:var(--soft);font-size:.88em}
.summary thead th:not(:first-child),.exact thead th:not(:first-child){text-align:right}
.text{white-space:normal}.good b{color:var(--good)}.bad b{color:var(--bad)}.number b{font-weight:600;font-size:.85em}.tie b{color:var(--soft)}
em{font-style:normal;font-size:.85em;border:1px solid var(--soft);border-radius:.7rem;padding:0 .45rem}
details{margin:.8rem 0}summary{cursor:pointer}
.heat-maps{display:flex;flex-wrap:wrap;gap:.8rem 1.6rem}.heat table{font-variant-numeric:tabular-nums}
.heat caption{color:var(--ink);font-weight:600;font-size:.92rem}.heat td{text-align:center;min-width:4rem}.heat td small{display:block;font-size:.83em;color:var(--ink)}
${heat}
.facts{width:100%;table-layout:fixed}.facts th{width:32%}.facts ul{margin:0;padding-left:1rem}.facts td,.facts th,code{overflow-wrap:anywhere}
code{font:.85em/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
${chartStyle}
@media (max-width:600px){.summary th:first-child,.exact th:first-child{position:sticky;left:0;background:var(--paper);max-width:9.5rem}.summary tbody th em{display:block;width:max-content;margin-top:.15rem}.facts,.facts tbody,.facts tr,.facts th,.facts td{display:block;width:auto}.facts th{border:0;padding-bottom:0;font-weight:600}.heat-maps{gap:.6rem}.heat td{min-width:3.1rem}.heat th,.heat td{padding:.25rem .35rem}h1{font-size:1.5rem}.lead{font-size:1.08rem}.chart{font-size:15px}.chart .tick,.chart .axis-label,.chart .mark-label{font-size:14px}.chart .name{font-size:14px}}
@media print{.bar,.switch{display:none}body{font-size:11pt}main,footer{max-width:none;padding:0}.figures{grid-template-columns:1fr 1fr}figure,tr,.heat{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}table{font-size:8.5pt}th,td{padding:.2rem .3rem}.summary{font-size:7pt;width:100%}.number small{font-size:.9em}.note,caption{font-size:9pt}.summary .sample{display:none}.summary thead th{min-width:0}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
`;
