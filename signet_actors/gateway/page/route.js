// Addresses: `#/screen/part?name=value`. What stands behind the # never leaves the browser, so no log has a question.
import { useEvent } from "./events.js";

export const SCOPE = ["project", "agent"];
export const START = "today";

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [screen, ...parts] = path.split("/").filter(Boolean).map(decoded);
  return { screen: screen || START, parts, params: Object.fromEntries(new URLSearchParams(query)) };
}

export const current = () => parse(location.hash);

// Returns the address of a screen (`["memory", id]` for one with parts) in the scope that is chosen now.
export function to(screen, params = {}) {
  const now = current().params;
  const scope = Object.fromEntries(SCOPE.map((name) => [name, now[name]]));
  const query = new URLSearchParams(Object.entries({ ...scope, ...params }).filter(([, value]) => value));
  const path = [screen].flat().map(encodeURIComponent).join("/");
  return `#/${path}${[...query].length ? `?${query}` : ""}`;
}

export function go(address, { replace = false } = {}) {
  if (address === location.hash) return;
  if (replace) {
    history.replaceState(history.state, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = address;
}

// Changes parameters of the present address.
export function setParams(changes, options) {
  const { screen, parts, params } = current();
  go(to([screen, ...parts], { ...params, ...changes }), options);
}

export const useRoute = () => useEvent("hashchange", current);
