// Jobs, found by state, workflow and phase, or by id. The filters stand in the address.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { duration, seconds } from "/static/format.js";
import { warn } from "/static/notices.js";
import { heading, jobLink, pager, pill, progress, select, table, when } from "/static/parts.js";
import { go, refine } from "/static/router.js";
import { words } from "/static/waits.js";

const STATES = ["pending", "running", "retryable", "succeeded", "failed", "cancelled"];
const ID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/i;
const address = (query) => `/jobs${queryString(query)}`;

export const jobs = {
  title: ({ query }) => (query.status ? `Jobs: ${query.status}` : "Jobs"),
  every: 2,
  async load({ query: { workflow, phase, status, cursor }, live }) {
    const [page, stats] = await Promise.all([
      get("/v1/jobs", { workflow, phase, status, cursor, limit: 50 }),
      live.stats ?? get("/v1/stats"),
    ]);
    return { ...page, phases: stats.phases };
  },
  render({ items, next, phases }, { query }) {
    return [
      heading("Jobs"),
      filters(phases, query),
      table({
        label: "Jobs",
        columns: COLUMNS,
        rows: items,
        key: (job) => job.id,
        empty: next ? "Nothing on this page; there may be older ones." : "No job matches.",
      }),
      pager(query, next, address),
    ];
  },
};

function filters(phases, query) {
  const workflows = [...new Set(phases.map((phase) => phase.workflow))];
  const known = phases
    .filter((phase) => !query.workflow || phase.workflow === query.workflow)
    .map((phase) => phase.phase);
  const choose = (part) => refine({ cursor: null, ...part });
  const options = (all, names) => [["", all], ...[...new Set(names)].map((name) => [name, name])];
  return h(
    "search",
    { class: "filters" },
    h(
      "nav",
      { class: "segments", "aria-label": "State" },
      ["", ...STATES].map((state) =>
        h(
          "a",
          {
            href: address({ ...query, status: state, cursor: null }),
            "aria-current": (query.status ?? "") === state ? "true" : null,
          },
          state || "all",
        ),
      ),
    ),
    h(
      "label",
      null,
      h("span", { class: "hidden" }, "Workflow"),
      select(
        { name: "workflow", onchange: (event) => choose({ workflow: event.target.value, phase: null }) },
        options("All workflows", workflows),
        query.workflow,
      ),
    ),
    h(
      "label",
      null,
      h("span", { class: "hidden" }, "Phase"),
      select(
        { name: "phase", onchange: (event) => choose({ phase: event.target.value }) },
        options("All phases", known),
        query.phase,
      ),
    ),
    h(
      "form",
      { role: "search", onsubmit: find },
      h(
        "label",
        null,
        h("span", { class: "hidden" }, "Job id"),
        h("input", {
          name: "id",
          type: "search",
          placeholder: "Find by job id",
          autocomplete: "off",
          spellcheck: "false",
          maxlength: 200,
        }),
      ),
    ),
  );
}

function find(event) {
  event.preventDefault();
  const typed = new FormData(event.currentTarget).get("id").trim();
  const found = ID.exec(typed);
  if (found) go(`/jobs/${found[0].toLowerCase()}`);
  else if (typed) warn(`"${typed.slice(0, 60)}" is not a job id; it looks like 01a1e35a-acab-720d-861a-d34a819014b2`);
}

export const COLUMNS = [
  { name: "State", cell: (job) => pill(job.status) },
  { name: "Job", cell: (job) => jobLink(job.id) },
  {
    name: "Phase",
    cell: (job) => h("span", { class: "phase" }, h("span", { class: "soft" }, `${job.workflow} › `), job.phase),
  },
  { name: "Errors", number: true, cell: (job) => `${job.attempts}/${job.max_attempts}` },
  { name: "Created", cell: (job) => when(job.created_at) },
  { name: "Age", number: true, cell: (job) => duration(Math.max(0, seconds(job.created_at, job.completed_at))) },
  { name: "Details", wide: true, cell: what },
];

function what(job) {
  if (job.status === "running" && job.progress_total)
    return progress(job.progress_done ?? 0, job.progress_total, { label: "Progress" });
  if (job.status === "retryable")
    return h("span", null, "again ", when(job.next_retry_at), h("span", { class: "line" }, job.error_message));
  if (job.error_message) return h("span", { class: "line" }, job.error_message.slice(0, 300));
  if (job.status === "running") return h("span", { class: "soft line" }, job.locked_by);
  return job.wait_reason ? h("span", { class: "soft" }, words(job.wait_reason)) : null;
}
