// Small pieces that several screens show.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";
import { to } from "./route.js";
import { useSetting } from "./settings-store.js";
import { ago, cut, exact, fits, isWeak, projectName, tagsOf, visible, whoOf } from "./words.js";
import { diff } from "./diff.js";

export const TYPES = ["fact", "preference", "decision", "learning", "issue", "rule"];

export const Type = ({ type }) => html`<span class=${`type type-${TYPES.includes(type) ? type : "other"}`}>${cut(type, 24)}</span>`;

export function Time({ at }) {
  const form = useSetting("times");
  const [, setBeat] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setBeat((beat) => beat + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return null;
  return html`<time dateTime=${at} title=${exact(at)}>${form === "exact" ? exact(at) : ago(at)}</time>`;
}

// Four steps and two digits: how likely it is that the memory answers.
export function Relevance({ value }) {
  if (typeof value !== "number") return null;
  const steps = [0.25, 0.5, 0.75, 0.9].map((least) => (value >= least ? "on" : ""));
  return html`<span class="relevance" role="img" aria-label=${`relevance ${value.toFixed(2)}, ${fits(value)}`}>
    <span class="steps">${steps.map((on) => html`<i class=${on}></i>`)}</span>
    <span class="digits">${value.toFixed(2)}</span>
  </span>`;
}

// Why the daemon has a memory where it is.
export function Because({ explanation }) {
  return explanation ? html`<ul>${explanation.because.map((line) => html`<li>${visible(line)}</li>`)}</ul>` : null;
}

export function Project({ project }) {
  return html`<span class=${project ? "project" : "project none"} title=${visible(project || "")}>${projectName(project)}</span>`;
}

export function Diff({ before, after }) {
  const parts = diff(before || "", after || "");
  return html`<p class="text diff">${parts.map(([kind, text]) =>
    kind === "same" ? visible(text) : kind === "out" ? html`<del>${visible(text)}</del>` : html`<ins>${visible(text)}</ins>`,
  )}</p>`;
}

// A reading that failed, or that takes long. What was read before stays on the screen; `rows` are shown before anything was read.
export function Reading({ load, what, rows = 0 }) {
  const { error, slow, at, data } = load;
  if (error) {
    return html`<p class="reading is-bad" role="alert">${error.message}${data && at
      ? ` What you see is from ${exact(new Date(at).toISOString())}.`
      : ""} <button onClick=${load.reload}>Try again</button>${error.status === 401 || error.code === "forbidden" ? html` Open the page with <${Command} text="signet dashboard" />` : null}</p>`;
  }
  return html`<p class="reading">${slow ? `Waiting for ${what} …` : ""}</p>
    ${data || !rows ? null : html`<div class="placeholder" aria-hidden="true">${Array.from({ length: rows }, () => html`<i></i>`)}</div>`}`;
}

export const Empty = ({ children }) => html`<div class="empty">${children}</div>`;

// Text for a terminal, with a button that copies it.
export function Command({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = () => navigator.clipboard?.writeText(text).then(() => setCopied(true), () => setCopied(false));
  return html`<span class="command"><code>${visible(text)}</code>
    <button class="plain" onClick=${copy} aria-label=${`Copy ${visible(text)}`}>${copied ? "Copied" : "Copy"}</button></span>`;
}

export const SIGNS = { ok: "●", warn: "◆", bad: "▲", none: "○" };

// Whether memory works, in the words of the daemon.
export const Headline = ({ verdict, children }) => html`<h2 class="headline"><span class=${`is-${verdict.level}`}>${SIGNS[verdict.level]} ${verdict.word}</span> <small>${visible(verdict.sentence)} ${children}</small></h2>`;

// What is wrong, the worst first; the children are more of the list.
export const Findings = ({ findings, children }) => html`<ul class="findings" aria-label="Needs you">
  ${findings.map(({ severity, text, command }) => html`<li key=${text} class=${`is-${severity}`}><p>${cut(text, 400)}</p>${command ? html`<${Command} text=${command} />` : null}</li>`)}${children}</ul>`;

// An element to which `work` is done when it appears: it gets the focus, or is a dialog in front of everything else.
export function useAppeared(work) {
  const place = useRef(null);
  useLayoutEffect(() => place.current && work(place.current), []);
  return place;
}

export const useFocus = () => useAppeared((element) => element.focus());
export const useModal = () => useAppeared((element) => element.showModal());

// One memory in a list.
export function MemoryLine({ row, cursor, selected, onSelect, onOpen, extra }) {
  const place = useRef(null);
  useEffect(() => {
    if (cursor) place.current?.scrollIntoView({ block: "nearest" });
  }, [cursor]);
  const weak = isWeak(row);
  const kinds = [cursor && "is-cursor", selected && "is-selected", weak && "is-weak", row.deleted_at && "is-gone", row.pinned && "is-pinned"];
  return html`<li ref=${place} class=${`line ${kinds.filter(Boolean).join(" ")}`} aria-current=${cursor ? "true" : undefined}>
    ${onSelect && html`<label class="check"><input type="checkbox" checked=${selected} onClick=${onSelect}
      aria-label=${`Select: ${cut(row.content, 60)}`} /></label>`}
    <a class="main" href=${to(["memory", row.id])} onClick=${(event) => {
      if (!onOpen || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      onOpen();
    }}>
      <span class="head"><${Relevance} value=${row.relevance} />
        ${row.pinned ? html`<span class="pin">▲ pinned</span>` : null}
        <span class="words">${cut(row.content, 400)}</span></span>
      <span class="meta"><${Type} type=${row.type} />
        ${tagsOf(row.tags).slice(0, 6).map((tag) => html`<span class="tag">${cut(tag, 30)}</span>`)}
        ${"project" in row && html`<${Project} project=${row.project} />`}
        ${whoOf(row) && html`<span>${cut(whoOf(row), 30)}</span>`}
        <${Time} at=${row.created_at} />
        ${weak && html`<span>probably does not answer</span>`}
        ${extra}</span>
    </a>
  </li>`;
}
