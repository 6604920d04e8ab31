// Jobs, found by state, workflow and phase, or by id. The filters stand in the address.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { attempt } from "/static/dialog.js";
import { duration, now, seconds } from "/static/format.js";
import { canCancel, canReplay, cancelAll, filterOf, replayAll } from "/static/many.js";
import { warn } from "/static/notices.js";
import { button, heading, jobLink, pager, pill, progress, select, table, when } from "/static/parts.js";
import { current, go, refine } from "/static/router.js";
import { words } from "/static/waits.js";

const STATES = ["unfinished", "pending", "running", "retryable", "succeeded", "failed", "cancelled"];
const ID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/i;
/** Ids begin with the time they were made at. */
const BEGINNING = /^01[0-9a-f]{6}[0-9a-f-]*$/i;
const address = (query) => `/jobs${queryString(query)}`;

export const jobs = {
  title: ({ query }) => (query.status ? `Jobs: ${query.status}` : "Jobs"),
  every: 2,
  async load({ query, live }) {
    const [page, stats] = await Promise.all([
      get("/v1/jobs", { ...asked(query), cursor: query.cursor, limit: 50 }),
      live.stats ?? get("/v1/stats"),
    ]);
    return { ...page, phases: stats.phases };
  },
  render({ items, next, phases }, context) {
    const { query } = context;
    return [
      heading("Jobs", { aside: context.mayAct && items.length > 0 ? actions(query, context) : null }),
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

/** A time since then stands in the address as its length. */
const asked = (query) => ({ ...filterOf(query), since: sinceOf(query.since) });
const sinceOf = (hours) => (hours ? new Date(now() - Number(hours) * 3_600_000).toISOString() : null);
const SINCE = [
  ["", "Any time"],
  ["1", "Last hour"],
  ["24", "Last day"],
  ["168", "Last week"],
];

function actions(query, context) {
  // What the address says at the click: what is drawn may still be of the filter before.
  const all = (act) => () => attempt(() => act(asked(current().query), context));
  return [
    canReplay(query.status) && button("Replay all…", all(replayAll)),
    canCancel(query.status) && button("Cancel all…", all(cancelAll), "danger quiet"),
  ];
}

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
      "label",
      null,
      h("span", { class: "hidden" }, "Submitted"),
      select(
        { name: "since", onchange: (event) => choose({ since: event.target.value }) },
        SINCE,
        query.since,
      ),
    ),
    h(
      "form",
      { role: "search", onsubmit: find },
      h(
        "label",
        null,
        h("span", { class: "hidden" }, "Job id, tag or error"),
        h("input", {
          name: "words",
          type: "search",
          placeholder: "Job id, #tag or error",
          value: wordsOf(query),
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
  const typed = new FormData(event.currentTarget).get("words").trim();
  const found = ID.exec(typed);
  if (found) return go(`/jobs/${found[0].toLowerCase()}`);
  const nothing = { cursor: null, id: null, tag: null, error: null };
  if (typed.startsWith("#")) return refine({ ...nothing, tag: typed.slice(1) });
  if (BEGINNING.test(typed)) return refine({ ...nothing, id: typed.toLowerCase() });
  if (typed.length === 1) return warn("Type two letters or more.");
  refine({ ...nothing, error: typed || null });
}

/** What was searched for. */
const wordsOf = ({ id, tag, error }) => id || error || (tag ? `#${tag}` : "");

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
