// Schedules: when each comes next, pausing and resuming it, and a job of it now.

import { get, post, queryString } from "/static/api.js";
import { attempt } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { duration, moment } from "/static/format.js";
import { button, heading, jobLink, json, pager, pill, section, table, when } from "/static/parts.js";
import { go } from "/static/router.js";

const addressOf = (one) => `/schedules/${one.workflow}/${one.name}`;

export const schedules = {
  title: () => "Schedules",
  every: 5,
  load: async ({ query: { workflow, cursor } }) => get("/v1/schedules", { workflow, cursor }),
  render({ items, next }, context) {
    const { query } = context;
    return [
      heading("Schedules", { count: query.workflow }),
      schedulesTable(items, context),
      pager(query, next, (wanted) => `/schedules${queryString(wanted)}`),
    ];
  },
};

export const schedulesTable = (rows, context) =>
  table({
    label: "Schedules",
    columns: [...COLUMNS, ...(context.mayAct ? [{ name: "Change", cell: (one) => change(one, context) }] : [])],
    rows,
    key: (one) => `${one.workflow}.${one.name}`,
    empty: "No schedule. They are declared with a workflow, or made at run time: pipeline schedules add.",
  });

export const schedule = {
  title: ({ params }) => `Schedule ${params.schedule}`,
  every: 5,
  load: async ({ params: { workflow, schedule } }) => get(`/v1/schedules/${workflow}/${schedule}`),
  render(one, context) {
    return [
      h(
        "nav",
        { class: "crumbs", "aria-label": "Breadcrumb" },
        h("a", { href: "/schedules" }, "Schedules"),
        " › ",
        h("a", { href: `/workflows/${one.workflow}` }, one.workflow),
      ),
      heading(one.name, { aside: [state(one), context.mayAct && change(one, context)] }),
      facts(one),
      h(
        "div",
        { class: "columns", "data-key": "next" },
        section(
          "Next moments",
          one.moments.length
            ? h("ol", { class: "moments" }, one.moments.map((at) => h("li", null, when(at), " ", h("span", { class: "soft" }, moment(at)))))
            : h("p", { class: "empty" }, one.paused_at ? "None while it is paused." : "None, or not worked out yet."),
        ),
        section("Body of its jobs", json(one.body)),
      ),
    ];
  },
};

const rhythm = (one) => (one.cron ? h("code", null, one.cron) : `every ${duration(one.every)}`);

function state(one) {
  if (one.problem) return pill("no jobs", "failed");
  return one.paused_at ? pill("paused") : one.waits ? pill("waits for a job", "pending") : pill("active", "succeeded");
}

function facts(one) {
  const fact = (name, ...value) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value));
  return h(
    "dl",
    { class: "facts" },
    fact("Comes", rhythm(one)),
    one.cron && fact("Time zone", one.timezone),
    fact("Declared", one.source === "code" ? "in code" : "at run time"),
    fact("While a job has not ended", OVERLAP[one.overlap]),
    one.paused_at && fact("Paused", when(one.paused_at)),
    one.problem && fact("Problem", h("span", { class: "bad" }, one.problem)),
    fact("Last moment", when(one.last_at)),
    fact("Last job", one.last_job ? jobLink(one.last_job) : "none yet"),
    fact("Its jobs", h("a", { href: `/jobs?workflow=${one.workflow}&tag=schedule%3A${one.name}` }, "all of them")),
    one.backfill_at && fact("Backfill", when(one.backfill_at), " until ", moment(one.backfill_until)),
    fact("Audit", h("a", { href: `/audit?subject=${one.workflow}.${one.name}` }, "who changed it")),
  );
}

const OVERLAP = {
  allow: "submits another",
  skip: "skips the moment",
  queue: "waits for its end",
  cancel: "cancels it",
};

const COLUMNS = [
  { name: "State", cell: state },
  { name: "Schedule", cell: (one) => h("a", { href: addressOf(one) }, one.name) },
  { name: "Workflow", cell: (one) => h("a", { href: `/workflows/${one.workflow}` }, one.workflow) },
  { name: "Comes", cell: rhythm },
  { name: "Zone", cell: (one) => (one.cron ? one.timezone : "–") },
  { name: "Next", cell: (one) => when(one.next_at) },
  { name: "Last", cell: (one) => when(one.last_at) },
  { name: "Last job", cell: (one) => (one.last_job ? jobLink(one.last_job) : h("span", { class: "soft" }, "–")) },
];

function change(one, context) {
  return h(
    "span",
    { class: "row-actions" },
    one.paused_at
      ? button("Resume", () => steer(one, "resume", context), "tiny")
      : button("Pause", () => steer(one, "pause", context), "tiny"),
    button("Run now", () => run(one), "tiny"),
  );
}

const steer = (one, what, { refresh }) =>
  attempt(async () => {
    await post(`/v1${addressOf(one)}/${what}`);
    await refresh();
    return what === "pause" ? `Paused ${one.name}.` : `Resumed ${one.name}: its moments count from now on.`;
  });

const run = (one) =>
  attempt(async () => {
    const { id } = await post(`/v1${addressOf(one)}/run`);
    go(`/jobs/${id}`);
    return `Submitted a job of ${one.name}.`;
  });
