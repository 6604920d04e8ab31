// Batches: fan-outs with their progress.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { count, duration, seconds, short } from "/static/format.js";
import { heading, jobLink, pager, pill, progress, table, when } from "/static/parts.js";

const address = (query) => `/batches${queryString(query)}`;

export const batches = {
  title: () => "Batches",
  every: 2,
  load: async ({ query: { open, cursor } }) => get("/v1/batches", { open: open ? true : null, cursor }),
  render({ items, next }, { query }) {
    const choice = h(
      "nav",
      { class: "segments", "aria-label": "Which batches" },
      [
        ["", "all"],
        ["1", "open"],
      ].map(([value, text]) =>
        h("a", { href: address({ open: value }), "aria-current": (query.open ?? "") === value ? "true" : null }, text),
      ),
    );
    return [
      heading("Batches", { aside: choice }),
      table({
        label: "Batches",
        columns: COLUMNS,
        rows: items,
        key: (batch) => batch.id,
        empty: query.open ? "No batch is open." : "No batch yet.",
      }),
      pager(query, next, address),
    ];
  },
};

const state = (batch) => (batch.completed_at ? "complete" : batch.sealed ? "open" : "filling");

const COLUMNS = [
  {
    name: "State",
    cell: (batch) => pill(state(batch), { complete: "succeeded", open: "running", filling: "pending" }[state(batch)]),
  },
  { name: "Batch", cell: (batch) => h("a", { class: "mono", title: batch.id, href: `/batches/${batch.id}` }, short(batch.id)) },
  {
    name: "Progress",
    wide: true,
    cell: (batch) =>
      progress(batch.total - batch.remaining, batch.total, { bad: batch.failed, label: `Batch ${short(batch.id)}` }),
  },
  { name: "Done", number: true, cell: (batch) => `${count(batch.total - batch.remaining)}/${count(batch.total)}` },
  {
    name: "Failed",
    number: true,
    cell: (batch) =>
      batch.failed ? h("span", { class: "bad" }, count(batch.failed)) : h("span", { class: "zero" }, "0"),
  },
  {
    name: "For",
    cell: (batch) => (batch.parent_job ? h("span", null, "children of ", jobLink(batch.parent_job)) : h("span", { class: "soft" }, "–")),
  },
  {
    name: "Then",
    cell: (batch) =>
      batch.callback_job
        ? h("span", null, `${batch.callback_workflow} `, jobLink(batch.callback_job))
        : (batch.callback_workflow ?? h("span", { class: "soft" }, "nothing")),
  },
  { name: "Created", cell: (batch) => when(batch.created_at) },
  {
    name: "Time",
    number: true,
    cell: (batch) =>
      batch.completed_at
        ? duration(seconds(batch.created_at, batch.completed_at))
        : duration(Math.floor(seconds(batch.created_at))),
  },
];
