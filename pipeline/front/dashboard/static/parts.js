// The small things every view is made of.

import { attempt } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { ago, moment, percent, short } from "/static/format.js";

const PREVIEW = 280;

/** A state: always a word, with a colour beside it. */
export function pill(state, kind = state) {
  return h(
    "span",
    { class: `pill ${kind.replace(/[^a-z]/g, "-")}` },
    h("span", { class: "dot", "aria-hidden": "true" }),
    state,
  );
}

/** A moment, told by its age; the precise time on hover. */
export function when(iso) {
  return iso ? h("time", { datetime: iso, title: moment(iso) }, ago(iso)) : h("span", { class: "soft" }, "–");
}

/** A link to a job by the end of its id. */
export function jobLink(id, text = short(id)) {
  return h("a", { href: `/jobs/${id}`, class: "mono", title: id }, text);
}

/** Text that others wrote: cut, with the rest on demand. */
export function cut(text, most = PREVIEW) {
  if (!text) return h("span", { class: "soft" }, "–");
  if (text.length <= most) return h("pre", { class: "text" }, text);
  return h(
    "div",
    { class: "cut" },
    h("pre", { class: "text preview" }, `${text.slice(0, most)}…`),
    h(
      "details",
      null,
      h(
        "summary",
        null,
        h("span", { class: "closed" }, `Show more (${text.length.toLocaleString("en")} characters)`),
        h("span", { class: "opened" }, "Show less"),
      ),
      h("pre", { class: "text whole" }, text),
    ),
  );
}

/** JSON, indented. */
export function json(value) {
  return cut(JSON.stringify(value, null, 2), 800);
}

/** A table that becomes cards on a phone; the roles stay when its looks change.
 *  `columns`: {name, cell(row), number, wide}; `key(row)` keeps a row's element when the order changes. */
export function table({ label, columns, rows, key, empty = "Nothing here." }) {
  if (!rows.length) return h("p", { class: "empty", "data-key": "empty" }, empty);
  const kind = (column) => [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null;
  const head = columns.map((column) =>
    h("th", { scope: "col", role: "columnheader", class: kind(column) }, column.name),
  );
  const body = rows.map((row) =>
    h(
      "tr",
      { role: "row", "data-key": key(row) },
      columns.map((column) =>
        h("td", { role: "cell", class: kind(column), "data-label": column.name }, column.cell(row)),
      ),
    ),
  );
  return h(
    "div",
    { class: "table", "data-key": "table" },
    h(
      "table",
      { role: "table", "aria-label": label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
      h("tbody", { role: "rowgroup" }, body),
    ),
  );
}

/** How far something is; `bad` of `total` ended badly. */
export function progress(done, total, { bad = 0, label }) {
  const share = total ? done / total : 0;
  return h(
    "div",
    { class: "progress" },
    h(
      "div",
      {
        class: "track",
        role: "progressbar",
        "aria-label": label,
        "aria-valuemin": "0",
        "aria-valuemax": String(total),
        "aria-valuenow": String(done),
      },
      h("span", { class: "good", style: { width: `${total ? ((done - bad) / total) * 100 : 0}%` } }),
      h("span", { class: "bad", style: { width: `${total ? (bad / total) * 100 : 0}%` } }),
    ),
    h("span", { class: "amount" }, total ? percent(share) : "empty"),
  );
}

/** A page's title with what can be done beside it. */
export function heading(title, { count, aside } = {}) {
  return h(
    "div",
    { class: "heading" },
    h("h1", { tabindex: "-1" }, title, count !== undefined && h("span", { class: "count" }, count)),
    aside && h("div", { class: "aside" }, aside),
  );
}

export function section(title, ...children) {
  return h("section", { "aria-label": title }, h("h2", null, title), children);
}

/** A section with something beside its title. */
export function sectionWith(title, beside, ...children) {
  return h("section", { "aria-label": title }, h("h2", null, title, " ", beside), children);
}

/** A choice; `options` are [value, text]. */
export function select(props, options, chosen = "") {
  const known = options.some(([value]) => value === chosen);
  const all = known || !chosen ? options : [...options, [chosen, chosen]];
  return h(
    "select",
    { ...props, value: chosen },
    all.map(([value, text]) => h("option", { value }, text)),
  );
}

export function button(text, act, kind = "") {
  return h("button", { type: "button", class: kind || null, onclick: act }, text);
}

/** A choice between addresses; `options` are [value, text]. */
export function segments(label, options, chosen, address) {
  return h(
    "nav",
    { class: "segments", "aria-label": label },
    options.map(([value, text]) =>
      h("a", { href: address(value), "aria-current": value === chosen ? "true" : null }, text),
    ),
  );
}

/** Puts a text on the clipboard; `what` says which, for a screen reader. */
export function copyButton(text, what) {
  return h("button", { type: "button", class: "tiny", "aria-label": `Copy ${what}`, onclick: () => copy(text) }, "Copy");
}

function copy(text) {
  attempt(async () => {
    // A page without TLS, at another address than this machine's, has no clipboard.
    if (!navigator.clipboard) throw new Error("This page may not use the clipboard: it is not served over HTTPS.");
    await navigator.clipboard.writeText(text);
    return "Copied.";
  });
}

/** Newer and older, as links that can be shared. */
export function pager(query, next, address) {
  if (!query.cursor && !next) return null;
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    query.cursor && h("a", { href: address({ ...query, cursor: null }), class: "button" }, "Newest"),
    next && h("a", { href: address({ ...query, cursor: next }), class: "button" }, "Next page"),
  );
}
