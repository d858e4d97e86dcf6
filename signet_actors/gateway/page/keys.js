// The keyboard. Each component adds a table; the newest table that knows a key gets it, that of the frame is asked last.
import { useLayoutEffect, useRef } from "./preact.js";
import { setting } from "./settings-store.js";

const tables = [];

// `table`: key -> [what it does, function]. Names: "j", "X" (with Shift), "Enter", "Escape", "Ctrl+Enter".
// `frame`: of the frame around all screens.
export function useKeys(table, { frame = false } = {}) {
  const kept = useRef(null);
  if (kept.current === null) kept.current = { table };
  kept.current.table = table;
  useLayoutEffect(() => {
    if (frame) tables.unshift(kept.current);
    else tables.push(kept.current);
    return () => tables.splice(tables.indexOf(kept.current), 1);
  }, []);
}

// Returns [key, what it does] of all that can be pressed now.
export function knownKeys() {
  const known = new Map();
  for (const { table } of [...tables].reverse()) {
    for (const [key, [text]] of Object.entries(table)) if (!known.has(key) && text) known.set(key, text);
  }
  return [...known];
}

function nameOf(event) {
  const name = event.key;
  return event.ctrlKey || event.metaKey ? `Ctrl+${name.length === 1 ? name.toUpperCase() : name}` : name;
}

function isTyping(target) {
  return Boolean(target.closest?.("input:not([type=checkbox]), textarea, select"));
}

let prefix = "";

function pressed(event) {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = nameOf(event);
  const typing = isTyping(event.target);
  if (typing && !name.startsWith("Ctrl+") && name !== "Escape") return;
  if (name === "Enter" && event.target.closest?.("a, button, summary")) return;
  if (name.length === 1 && !typing && setting("keys") === "off" && name !== "?") return;
  if (document.querySelector("dialog[open]") && name !== "Escape" && !name.startsWith("Ctrl+")) return;
  const full = prefix && name.length === 1 ? `${prefix} ${name}` : name;
  prefix = "";
  if (name === "g" && !typing) {
    prefix = "g";
    return;
  }
  for (const { table } of [...tables].reverse()) {
    const found = table[full];
    if (!found) continue;
    event.preventDefault();
    found[1](event);
    return;
  }
}

document.addEventListener("keydown", pressed);
