// What a person has chosen on this page, kept in this browser.
import { useEffect, useState } from "./preact.js";

const DEFAULTS = { theme: "auto", rows: "wide", keys: "on", times: "short" };
const listeners = new Set();

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
  for (const listener of listeners) listener();
}

export function useSetting(name) {
  const [value, setValue] = useState(setting(name));
  useEffect(() => {
    const changed = () => setValue(setting(name));
    listeners.add(changed);
    return () => listeners.delete(changed);
  }, [name]);
  return value;
}

export function apply() {
  document.documentElement.dataset.theme = setting("theme");
  document.documentElement.dataset.rows = setting("rows");
}
