// Keys for those who do not take the hand off the keyboard. They can be turned off, for who dictates or types elsewhere.

import { h } from "/static/dom.js";
import { go } from "/static/router.js";

const OFF = "keys are off";
const TYPED_IN = "input, textarea, select, [contenteditable], dialog, dialog *";
const KEYS = [
  ["/", "search jobs"],
  ["j, k", "next and previous row; Enter opens it"],
  ["?", "this list"],
];
let open = null;

/** Listens on the whole page; a key that somebody types into a field, or with Ctrl or Alt, is not ours. */
export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPED_IN)) return;
    const act = ACTS[event.key];
    if (!act || (isOff() && event.key !== "?") || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    act();
  });
}

const ACTS = { "/": search, j: () => move(1), k: () => move(-1), "?": showKeys };
const isOff = () => localStorage.getItem(OFF) === "yes";

function search() {
  const field = () => document.querySelector("main input[type=search]");
  if (!field()) go("/jobs");
  const watch = new MutationObserver(focus);
  watch.observe(document.getElementById("main"), { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), 5000);
  focus();

  function focus() {
    if (!field()) return;
    watch.disconnect();
    // Showing a new page puts the focus on its title, a moment later.
    setTimeout(() => field()?.focus(), 50);
    field().focus();
  }
}

/** To the first link or button of another row: where a table has none, of another card. */
function move(by) {
  const rows = [...document.querySelectorAll("main tbody tr, main article.card")].filter((row) => target(row));
  if (!rows.length) return;
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + by, 0), rows.length - 1);
  target(rows[next]).focus();
  rows[next].scrollIntoView({ block: "nearest" });
}

const target = (row) => row.querySelector("a[href^='/jobs/'], a, button, summary");

/** What each key does, and whether they are on. */
export function showKeys() {
  if (open) return;
  const box = h("input", { type: "checkbox", onchange: (event) => localStorage.setItem(OFF, event.target.checked ? "no" : "yes") });
  box.checked = !isOff();
  open = h(
    "dialog",
    { "aria-labelledby": "keys" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "keys" }, "Keys"),
      h(
        "dl",
        { class: "keys" },
        KEYS.map(([key, does]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, does))),
      ),
      h("label", { class: "check" }, box, " Keys are on (? always is)"),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Close")),
    ),
  );
  open.addEventListener("close", () => {
    open.remove();
    open = null;
  });
  document.body.append(open);
  open.showModal();
}
