// The children of a job, in the order of their bodies.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { short } from "/static/format.js";
import { heading, jobLink, pager, table } from "/static/parts.js";
import { COLUMNS } from "/static/views/jobs.js";

const STATES = ["pending", "running", "retryable", "succeeded", "failed", "cancelled"];

export const children = {
  title: ({ params }) => `Children of ${short(params.id)}`,
  every: 2,
  load: async ({ params: { id }, query: { status, cursor } }) =>
    get(`/v1/jobs/${encodeURIComponent(id)}/children`, { status, cursor, limit: 50 }),
  render({ items, next }, { params: { id }, query }) {
    const address = (query) => `/jobs/${id}/children${queryString(query)}`;
    const choice = h(
      "nav",
      { class: "segments", "aria-label": "State" },
      ["", ...STATES].map((state) =>
        h(
          "a",
          { href: address({ status: state }), "aria-current": (query.status ?? "") === state ? "true" : null },
          state || "all",
        ),
      ),
    );
    return [
      h(
        "nav",
        { class: "crumbs", "aria-label": "Breadcrumb" },
        h("a", { href: "/jobs" }, "Jobs"),
        " › ",
        jobLink(id),
      ),
      heading("Children", { aside: choice }),
      table({ label: "Children", columns: COLUMNS, rows: items, key: (job) => job.id, empty: "No child matches." }),
      pager(query, next, address),
    ];
  },
};
