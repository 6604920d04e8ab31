// Addresses. What a view shows stands in the address, so that it can be shared and comes back with the back button.

import { queryString } from "/static/api.js";

const routes = [];
const address = () => location.pathname + location.search;
let changed = () => {};

/** `pattern` such as /jobs/{id} */
export function route(pattern, view) {
  const names = [...pattern.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  routes.push({ expression: new RegExp(`^${pattern.replace(/\{\w+\}/g, "([^/]+)")}$`), names, view });
}

/** The view for the page's address, its parameters and its query. */
export function current() {
  const query = Object.fromEntries(new URLSearchParams(location.search));
  for (const { expression, names, view } of routes) {
    const found = expression.exec(location.pathname);
    if (found) return { view, query, params: Object.fromEntries(names.map((name, i) => [name, found[i + 1]])) };
  }
  return { view: null, query, params: {} };
}

/** Another page, or the next of a list: the reader begins at its top. A filter leaves them where they are. */
export function go(where) {
  if (where === address()) return;
  const past = new URL(location.href);
  history.pushState(null, "", where);
  const cursor = (url) => new URL(url).searchParams.get("cursor");
  changed(location.pathname !== past.pathname || cursor(location.href) !== cursor(past));
}

/** Change part of the query; what is set to null goes. The reader stays where they are on the page. */
export function refine(part) {
  const query = { ...Object.fromEntries(new URLSearchParams(location.search)), ...part };
  history.pushState(null, "", location.pathname + queryString(query));
  changed(false);
}

/** Calls `tell(isNewPage)` whenever the address changes; links inside the dashboard need no reload. */
export function listen(tell) {
  changed = tell;
  let before = address();
  addEventListener("popstate", () => {
    // A jump inside the page, such as the skip link's, is no other page.
    if (address() !== before) tell(true);
    before = address();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='/']");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || link.target || event.defaultPrevented) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
}
