// Values in words. A text of the store is shown as text: what would be invisible or turn the line around is spelled out.

const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff" +
    "\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}]",
  "gu",
);

export function visible(text) {
  return String(text ?? "").replace(HIDDEN, (char) => `⟦U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
}

export function cut(text, most) {
  const shown = [...String(text ?? "").slice(0, 2 * most)];
  return visible(shown.length > most ? `${shown.slice(0, most).join("")}…` : String(text ?? ""));
}

// A clause of the daemon, as a sentence.
export function sentence(text) {
  const shown = cut(text, 400);
  return `${shown.charAt(0).toUpperCase()}${shown.slice(1)}${/[.!?]$/.test(shown) ? "" : "."}`;
}

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

const UNITS = [["y", 31557600], ["mo", 2629800], ["d", 86400], ["h", 3600], ["min", 60]];

export function span(seconds) {
  const [unit, size] = UNITS.find(([, each]) => seconds >= each) || ["s", 1];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}

export function ago(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (Number.isNaN(seconds)) return visible(iso);
  return Math.abs(seconds) < 5 ? "just now" : seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
}

export const exact = (iso) => (Number.isNaN(Date.parse(iso)) ? visible(iso) : new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }));
export const day = (iso) => new Date(iso).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
export const moment = (iso) => new Date(iso).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export function size(bytes) {
  const [unit, each] = bytes >= 1e9 ? ["GB", 1e9] : bytes >= 1e6 ? ["MB", 1e6] : ["kB", 1e3];
  return `${(bytes / each).toFixed(bytes >= 1e7 ? 0 : 1)} ${unit}`;
}

// The last part of a path; the whole one is in its title.
export const projectName = (project) => (project ? cut(project.replace(/\/+$/, "").split("/").pop() || project, 40) : "no project");

// Who said it; "daemon" stands for nobody named.
export const whoOf = ({ who }) => (who === "daemon" ? "" : who);
export const tagsOf = (tags) => (Array.isArray(tags) ? tags : tags ? tags.split(",") : []);

export const isWeak = ({ relevance }) => typeof relevance === "number" && relevance < 0.5;
export const isId = (text) => /^[0-9a-f-]{6,36}$/i.test(text); // or its first characters

export function fits(relevance) {
  if (relevance >= 0.8) return "most likely answers";
  return relevance >= 0.5 ? "likely answers" : "probably does not answer";
}
