// What the doctor found, worst first.

import type { JSX } from "preact";
import type { Diagnosis, DoctorFinding } from "../../../src/advice/doctor/types.ts";
import { language, words } from "../../shell/preferences.ts";

export function Findings({ of }: { readonly of: Diagnosis }): JSX.Element {
  const text = words.value.doctor;
  const count = (severity: DoctorFinding["severity"]): number =>
    of.findings.filter((finding) => finding.severity === severity).length;
  return (
    <section class="card" aria-labelledby="findings">
      <h2 id="findings">{text.findings}</h2>
      <p
        class={count("error") > 0 ? "verdict bad" : count("warning") > 0 ? "verdict" : "verdict good"}
        role="status"
        data-number="count"
      >
        {of.findings.length === 0 ? text.healthy : text.count(count("error"), count("warning"), count("note"))}
      </p>
      <ul class="diagnosis">
        {of.findings.map((finding) => (
          <One key={`${finding.code} ${finding.where} ${finding.expected}`} of={finding} />
        ))}
      </ul>
    </section>
  );
}

function One({ of }: { readonly of: DoctorFinding }): JSX.Element {
  const text = words.value.doctor;
  const chinese = language.value === "zh-TW";
  // What has no Chinese yet is shown as it is, and said to be English.
  const said = (key: "expected" | "why" | "fix"): JSX.Element => {
    const translated = chinese ? of.chinese[key] : "";
    return translated === "" ? <span lang="en">{of[key]}</span> : <span>{translated}</span>;
  };
  return (
    <li data-code={of.code} class={of.severity}>
      <h3>
        <span class="severity">{text.severities[of.severity]}</span> <code>{of.code}</code>
        {of.engine === null ? null : <small> {of.engine}</small>}
      </h3>
      <p>{said("why")}</p>
      <dl class="facts">
        <dt>{text.where}</dt>
        <dd>
          <code>{of.where}</code>
        </dd>
        <dt>{text.got}</dt>
        <dd>{of.got == null ? text.absent : <code>{shown(of.got)}</code>}</dd>
        {of.expected === "" ? null : (
          <>
            <dt>{text.expected}</dt>
            <dd>{said("expected")}</dd>
          </>
        )}
        {of.fix === "" ? null : (
          <>
            <dt>{text.fix}</dt>
            <dd>{said("fix")}</dd>
          </>
        )}
        {of.references.length === 0 ? null : (
          <>
            <dt>{text.references}</dt>
            <dd lang="en">
              {of.references.map((reference) => (
                <Reference key={reference} to={reference} />
              ))}
            </dd>
          </>
        )}
      </dl>
    </li>
  );
}

function Reference({ to }: { readonly to: string }): JSX.Element {
  if (!/^https:\/\//.test(to)) return <span class="reference">{to}</span>;
  return (
    <a class="reference" href={to} target="_blank" rel="noreferrer noopener">
      {to.replace(/^https:\/\/(www\.)?/, "")}
    </a>
  );
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
