// Who did what, when, why, to which jobs, from where.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { plural } from "/static/format.js";
import { heading, jobLink, pager, select, table, when } from "/static/parts.js";
import { refine } from "/static/router.js";

const ACTIONS = ["cancel", "replay", "discard", "pause", "resume", "set", "drain", "signal"];
const NAMES = ["job", "by", "subject"];

export const audit = {
  title: () => "Audit",
  every: 10,
  load: async ({ query: { job, by, action, subject, cursor } }) =>
    get("/v1/audit", { job, by, action, subject, cursor }),
  render({ items, next }, { query }) {
    const choice = select(
      { name: "action", onchange: (event) => refine({ action: event.target.value, cursor: null }) },
      [["", "All actions"], ...ACTIONS.map((name) => [name, name])],
      query.action,
    );
    const narrowed = NAMES.filter((name) => query[name]);
    return [
      heading("Audit", { aside: h("label", null, h("span", { class: "hidden" }, "Action"), choice) }),
      h(
        "p",
        { class: "lead", "data-key": "lead" },
        narrowed.length
          ? [narrowed.map((name) => `${name} ${query[name]}`).join(", "), " ", h("a", { href: "/audit" }, "Show all")]
          : "What was done through the API, this dashboard and the command line.",
      ),
      table({ label: "Audit", columns: COLUMNS, rows: items, key: (one) => String(one.id), empty: "Nothing was done." }),
      pager(query, next, (wanted) => `/audit${queryString(wanted)}`),
    ];
  },
};

const COLUMNS = [
  { name: "When", cell: (one) => when(one.at) },
  { name: "Who", cell: (one) => h("a", { href: `/audit${queryString({ by: one.who })}` }, one.who) },
  { name: "From", cell: (one) => `${one.door}${one.origin ? `, ${one.origin}` : ""}` },
  { name: "What", cell: (one) => h("span", null, one.action, " ", h("span", { class: "why" }, told(one.detail))) },
  { name: "To", cell: target },
  { name: "Why", wide: true, cell: (one) => one.reason ?? h("span", { class: "soft" }, "–") },
];

function told(detail) {
  const shown = ([name, value]) =>
    `${name} ${typeof value === "object" && value ? Object.entries(value).flat().join(" ") : value ?? "none"}`;
  return Object.entries(detail ?? {}).map(shown).join(", ");
}

function target({ jobs, job_ids: ids, subject }) {
  if (jobs === null) return subject ?? "";
  const named = h("span", null, jobs !== 1 && `${plural(jobs, "job")}: `, ids.map((id) => [jobLink(id), " "]), jobs > ids.length && "…");
  return subject ? h("span", null, `${subject}: `, named) : named;
}
