// What a person has chosen on this page, kept in this browser.
import { useEvent } from "./events.js";

const DEFAULTS = { theme: "auto", rows: "wide", keys: "on", times: "short" };

export function setting(name) {
  try {
    return localStorage.getItem(`signet.${name}`) || DEFAULTS[name];
  } catch {
    return DEFAULTS[name];
  }
}

export function choose(name, value) {
  try {
    localStorage.setItem(`signet.${name}`, value);
  } catch {
    // A browser without storage keeps it until the page is closed.
    DEFAULTS[name] = value;
  }
  apply();
  dispatchEvent(new Event("setting"));
}

export const useSetting = (name) => useEvent("setting", () => setting(name));

export function apply() {
  document.documentElement.dataset.theme = setting("theme");
  document.documentElement.dataset.rows = setting("rows");
}
