// What happened, said once: seen at the edge of the page, read out by a screen reader.

import { h } from "/static/dom.js";

const STAY = 7000;
const MOST = 4;

/** An answer to what the reader did. */
export function say(text) {
  show("said", text);
}

/** Something that did not work, and what to do. */
export function warn(text) {
  show("wrong", text);
}

function show(place, text) {
  const region = document.getElementById(place);
  const note = h(
    "div",
    { class: `notice ${place}` },
    h("p", null, text.slice(0, 500)),
    h("button", { type: "button", class: "plain", "aria-label": "Dismiss", onclick: () => note.remove() }, "×"),
  );
  region.append(note);
  while (region.children.length > MOST) region.firstChild.remove();
  if (place === "said") setTimeout(() => note.remove(), STAY);
}
