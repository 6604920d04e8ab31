// Rate limits: what jobs share outside, how far ahead permits are promised, and who is paused.

import { get } from "/static/api.js";
import { h } from "/static/dom.js";
import { capped, duration, rate } from "/static/format.js";
import { heading, pill, table, when } from "/static/parts.js";
import { words } from "/static/waits.js";

export const limits = {
  title: () => "Rate limits",
  every: 3,
  load: async () => get("/v1/limits"),
  render(rows) {
    return [
      heading("Rate limits", { count: `${rows.filter((one) => one.paused).length} paused` }),
      h(
        "p",
        { class: "lead", "data-key": "lead" },
        "Kept by all workers together. A job waits at the gate for its limit, at no cost. The rate of a phase, and its pause, are on the page ",
        h("a", { href: "/phases" }, "Phases"),
        ".",
      ),
      table({
        label: "Rate limits",
        columns: COLUMNS,
        rows,
        key: (one) => one.name,
        empty: "No rate limit was used yet.",
      }),
    ];
  },
};

const COLUMNS = [
  { name: "Rate limit", cell: (one) => one.name },
  { name: "State", cell: state },
  { name: "Calls a second", number: true, cell: (one) => (one.rate === null ? "no rate" : rate(one.rate)) },
  { name: "Burst", number: true, cell: (one) => (one.rate === null ? "–" : String(one.burst)) },
  { name: "Promised ahead", number: true, cell: (one) => duration(one.ahead) },
  { name: "Jobs waiting", number: true, cell: (one) => (one.waiting ? capped(one.waiting) : h("span", { class: "zero" }, "0")) },
];

function state(one) {
  if (!one.paused) return pill("open", "succeeded");
  const end = one.paused_until ? [" resumes ", when(one.paused_until)] : " until resumed";
  return h("span", null, pill("paused"), end, one.pause_reason && `: ${words(one.pause_reason)}`);
}
