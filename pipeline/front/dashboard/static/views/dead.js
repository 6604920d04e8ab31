// Dead letters by cause: look at samples, send one ahead as a canary, then the rest at a rate, or give them up.

import { get, queryString } from "/static/api.js";
import { bars } from "/static/chart.js";
import { bulkCard } from "/static/bulk.js";
import { canaries, follow, forget, nameOf, underWay } from "/static/canary.js";
import { attempt } from "/static/dialog.js";
import { discard, replayOne, replayRest } from "/static/dead_actions.js";
import { h } from "/static/dom.js";
import { capped, count, now } from "/static/format.js";
import { button, cut, heading, jobLink, pager, pill, select, table, when } from "/static/parts.js";
import { refine } from "/static/router.js";

const HOUR = 3_600_000;
const HOURS = 48;
const address = (query) => `/dead${queryString(query)}`;

export const dead = {
  title: () => "Dead letters",
  every: 2,
  async load({ query: { workflow, sort, words, cursor, group }, live }) {
    const asked = group
      ? get("/v1/dead/jobs", { group, cursor })
      : get("/v1/dead", { workflow, sort, words, cursor, limit: 20 });
    const [page, stats] = await Promise.all([asked, live.stats ?? get("/v1/stats"), follow()]);
    return { page, workflows: [...new Set(stats.phases.map((phase) => phase.workflow))], group };
  },
  render({ page, workflows, group }, context) {
    return group ? groupJobs(page, context) : groups(page, workflows, context);
  },
};

function groups({ items, next }, workflows, context) {
  const { query } = context;
  const choice = select(
    { name: "workflow", onchange: (event) => refine({ workflow: event.target.value, cursor: null }) },
    [["", "All workflows"], ...workflows.map((name) => [name, name])],
    query.workflow,
  );
  const order = select(
    { name: "sort", onchange: (event) => refine({ sort: event.target.value, cursor: null }) },
    [
      ["", "Most jobs first"],
      ["newest", "Newest first"],
    ],
    query.sort,
  );
  const words = h("input", {
    name: "words",
    type: "search",
    placeholder: "Search causes",
    value: query.words ?? "",
    maxlength: 200,
    onchange: (event) => refine({ words: event.target.value.trim() || null, cursor: null }),
  });
  const labelled = (label, control) => h("label", null, h("span", { class: "hidden" }, label), control);
  return [
    heading("Dead letters", {
      aside: [labelled("Cause", words), labelled("Order", order), labelled("Workflow", choice)],
    }),
    h(
      "p",
      { class: "lead", "data-key": "lead" },
      "Jobs that failed for good, grouped by the kind of error, where it was raised and what it said. They stay until they are replayed or discarded, or for PIPELINE_KEEP_FAILED_DAYS if that is set.",
    ),
    underWay.filter((one) => !one.ended_at).map((one) => bulkCard(one, context)),
    [...canaries.values()]
      .filter((canary) => !items.some((group) => nameOf(group) === nameOf(canary.group)))
      .map((canary) =>
        h(
          "article",
          { class: "card", "data-key": `canary ${canary.number}`, "aria-label": canary.group.cause },
          title(canary.group, "none left"),
          canaryLine(canary, null, context),
        ),
      ),
    items.map((group) => card(group, context)),
    !items.length &&
      h(
        "p",
        { class: "empty good", "data-key": "empty" },
        query.cursor ? "Nothing on this page." : "No dead letters. Nothing needs a decision.",
      ),
    pager(query, next, address),
  ];
}

const title = (group, jobs) =>
  h(
    "header",
    null,
    h("h2", null, group.cause),
    h("p", { class: "soft" }, `${group.workflow} › ${group.phase}`),
    h("p", { class: "jobs" }, jobs),
  );

function card(group, context) {
  const canary = canaries.get(nameOf(group));
  return h(
    "article",
    { class: "card", "data-key": group.group, "aria-label": group.cause },
    title(group, [h("b", null, capped(group.jobs)), group.jobs === 1 ? " job" : " jobs"]),
    h(
      "div",
      { class: "over-time" },
      bars(byHour(group.over_time), `Failures an hour over ${HOURS} hours: ${overTime(group)}`),
      h("span", { class: "hint" }, overTime(group)),
    ),
    group.samples[0]?.error && h("p", { class: "line mono" }, group.samples[0].error.split("\n", 1)[0].slice(0, 300)),
    h(
      "details",
      { class: "samples" },
      h("summary", null, `Samples (${group.samples.length})`),
      group.samples.map((sample) => sampleOf(sample, context, group)),
    ),
    canary && canaryLine(canary, group, context),
    h(
      "div",
      { class: "buttons" },
      h("a", { href: address({ group: group.group }), class: "button" }, "All jobs"),
      context.mayAct && [
        !canary && button("Replay one as canary", () => replayOne(group, group.samples[0], context), "primary"),
        button(
          canary ? "Replay the rest…" : "Replay all…",
          () => replayRest(group, context),
          canary?.status === "succeeded" ? "primary" : "",
        ),
        button("Discard…", () => discard(group, context), "danger quiet"),
      ],
    ),
  );
}

function sampleOf(sample, context, group) {
  return h(
    "div",
    { class: "sample", "data-key": sample.id },
    h(
      "p",
      null,
      jobLink(sample.id, sample.id),
      " failed ",
      when(sample.failed_at),
      " ",
      context.mayAct && button("Replay this one", () => replayOne(group, sample, context), "tiny"),
    ),
    cut(sample.error, 400),
    h("p", { class: "hint" }, "Body"),
    cut(sample.body, 400),
  );
}

function canaryLine(canary, group, context) {
  const words = {
    succeeded: "The canary succeeded.",
    failed: "The canary failed again.",
    cancelled: "The canary was cancelled.",
  };
  return h(
    "div",
    { class: "canary", "data-key": "canary" },
    pill(canary.status),
    h(
      "span",
      null,
      words[canary.status] ?? "The canary is on its way.",
      " ",
      canary.status === "succeeded" && group ? "The rest can follow." : "",
      " ",
      jobLink(canary.id),
    ),
    context.mayAct &&
      button(
        "Dismiss",
        () =>
          attempt(async () => {
            await forget(canary);
            await context.refresh();
          }),
        "tiny",
      ),
  );
}

function byHour(counts) {
  const end = Math.floor(now() / HOUR);
  const values = Array(HOURS).fill(0);
  for (const one of counts) {
    const place = HOURS - 1 - (end - Math.floor(Date.parse(one.at) / HOUR));
    if (place >= 0 && place < HOURS) values[place] += one.jobs;
  }
  return values;
}

function overTime(group) {
  const values = byHour(group.over_time);
  const day = values.slice(-24).reduce((sum, n) => sum + n, 0);
  return `${count(values[HOURS - 1])} this hour, ${count(day)} in 24 h${group.jobs > 200 ? " (of the newest 200)" : ""}`;
}

function groupJobs({ items, next }, { query }) {
  const columns = [
    { name: "Job", cell: (job) => jobLink(job.id) },
    { name: "Failed", cell: (job) => when(job.completed_at) },
    { name: "Errors", number: true, cell: (job) => `${job.attempts}/${job.max_attempts}` },
    { name: "Crashes", number: true, cell: (job) => job.crashes },
    { name: "Error", wide: true, cell: (job) => cut(job.error_message, 160) },
  ];
  return [
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/dead" }, "Dead letters")),
    heading("Jobs of the group"),
    table({ label: "Failed jobs", columns, rows: items, key: (job) => job.id, empty: "None is failed any more." }),
    pager(query, next, address),
  ];
}
