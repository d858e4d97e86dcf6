// The bar at the bottom: what was done, and for ten seconds the way back.
import { useEvent } from "./events.js";
import { html } from "./preact.js";
import { useKeys } from "./keys.js";

export const UNDO_MS = 10_000;

let shown = null;
let timer = 0;

function show(notice) {
  shown = notice;
  clearTimeout(timer);
  if (notice) timer = setTimeout(() => show(null), notice.ms);
  dispatchEvent(new Event("notice"));
}

export const say = (text, { bad = false } = {}) => show({ text, bad, ms: bad ? 20_000 : 6_000 });

// `undo` is an async function that takes the change back; it may return what to say then.
export const offerUndo = (text, undo) => show({ text, undo, ms: UNDO_MS });

export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, { bad: true });
    return undefined;
  }
}

// Copies the address of the present view, or another one; it is shown where that is refused.
export function copyLink(address = location.href) {
  if (!navigator.clipboard) return say(address);
  return navigator.clipboard.writeText(address).then(() => say("The link is copied."), () => say(address));
}

async function takeBack() {
  const undo = shown?.undo;
  if (!undo) return;
  show(null);
  await attempt(async () => say((await undo()) || "As it was before."));
}

export function Notice() {
  const notice = useEvent("notice", () => shown);
  useKeys({ u: ["undo the last change", takeBack] });
  return html`<div class=${`notice ${notice ? "is-shown" : ""} ${notice?.bad ? "is-bad" : ""}`} role="status" aria-live="polite">${notice && html`<span>${notice.text}</span>
    ${notice.undo && html`<button onClick=${takeBack}>Undo <kbd>u</kbd></button>`}<button class="plain" aria-label="Close" onClick=${() => show(null)}>×</button>`}</div>`;
}
