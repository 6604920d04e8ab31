// One batch: its jobs by state, who waits for them, and what is submitted then.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { count, short } from "/static/format.js";
import { copyButton, heading, jobLink, pager, progress, segments, table, when } from "/static/parts.js";
import { COLUMNS } from "/static/views/jobs.js";

const STATES = ["", "pending", "running", "retryable", "succeeded", "failed", "cancelled"];

export const batch = {
  title: ({ params }) => `Batch ${short(params.id)}`,
  every: 2,
  async load({ params: { id }, query: { status, cursor } }) {
    const path = `/v1/batches/${encodeURIComponent(id)}`;
    const [found, jobs] = await Promise.all([get(path), get(`${path}/jobs`, { status, cursor, limit: 50 })]);
    return { found, jobs };
  },
  render({ found, jobs: { items, next } }, { params: { id }, query }) {
    const address = (query) => `/batches/${id}${queryString(query)}`;
    const choices = STATES.map((state) => [state, state || "all"]);
    return [
      h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/batches" }, "Batches")),
      heading(["Batch ", h("span", { class: "mono id" }, id), copyButton(id, "the batch's id")], {
        aside: segments("State", choices, query.status ?? "", (status) => address({ status })),
      }),
      facts(found),
      table({ label: "Jobs of the batch", columns: COLUMNS, rows: items, key: (job) => job.id, empty: "No job matches." }),
      pager(query, next, address),
    ];
  },
};

function facts(found) {
  const fact = (name, ...value) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value));
  const done = found.total - found.remaining;
  return h(
    "dl",
    { class: "facts" },
    fact("Ended", progress(done, found.total, { bad: found.failed, label: "Jobs that have ended" })),
    fact("Jobs", `${count(done)} of ${count(found.total)}`),
    fact("Failed", count(found.failed)),
    found.parent_job && fact("Children of", jobLink(found.parent_job)),
    found.callback_workflow && fact("Then", h("a", { href: `/workflows/${found.callback_workflow}` }, found.callback_workflow)),
    found.callback_job && fact("Submitted then", jobLink(found.callback_job)),
    fact("Created", when(found.created_at)),
    found.completed_at && fact("Complete", when(found.completed_at)),
  );
}
