// One job: its state, where its time went, its errors, its body, and what can be done about it.

import { get, post } from "/static/api.js";
import { ask, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { duration, moment, seconds, short } from "/static/format.js";
import { button, copyButton, cut, heading, json, pill, progress, section, sectionWith, table, when } from "/static/parts.js";
import { timeline } from "/static/timeline.js";
import { errorOf, log } from "/static/views/job_log.js";
import { childrenOf, eventsOf, parentLink, waitsFor, words } from "/static/waits.js";

const ENDED = new Set(["succeeded", "failed", "cancelled"]);

export const job = {
  title: ({ params }) => `Job ${short(params.id)}`,
  every: 1,
  load: async ({ params }) => get(`/v1/jobs/${encodeURIComponent(params.id)}`),
  announce: (before, after) =>
    before.job.status !== after.job.status && ENDED.has(after.job.status)
      ? `Job ${short(after.job.id)} ${after.job.status}.`
      : null,
  render(found, context) {
    const { job, body, whole, result, timeline: parts, attempts, steps, output, why } = found;
    return [
      h(
        "nav",
        { class: "crumbs", "aria-label": "Breadcrumb" },
        h("a", { href: "/jobs" }, "Jobs"),
        " › ",
        h("a", { href: `/workflows/${job.workflow}` }, job.workflow),
      ),
      heading([pill(job.status), h("span", { class: "mono id" }, job.id), copyButton(job.id, "the job's id")], {
        aside: context.mayAct ? actions(job, context, whole ? body : null) : null,
      }),
      facts(found),
      job.error_message &&
        h(
          "section",
          { class: "error", "aria-label": "Error", "data-key": "error" },
          h("h2", null, "Error ", copyButton([job.error_message, why?.traceback].filter(Boolean).join("\n\n"), "the error")),
          cut(job.error_message),
          why && log(why),
        ),
      childrenOf(job, found.children),
      eventsOf(found, context, ENDED.has(job.status)),
      h("div", { "data-key": "timeline" }, section("Where its time went", timeline(parts))),
      h(
        "div",
        { "data-key": "attempts" },
        section(
          "Attempts",
          table({
            label: "Attempts",
            columns: attemptColumns(job, context),
            rows: attempts,
            key: (one) => String(one.fence),
            empty: "No attempt has ended yet.",
          }),
        ),
      ),
      steps.length > 0 &&
        h(
          "div",
          { "data-key": "steps" },
          section(
            "Steps",
            table({
              label: "Steps",
              columns: STEPS,
              rows: steps,
              key: (one) => `${one.phase} ${one.name}`,
            }),
          ),
        ),
      h(
        "div",
        { class: "columns", "data-key": "body" },
        sectionWith("Body", whole && copyButton(JSON.stringify(body, null, 2), "the body"), json(body)),
        result && section("Results by phase", json(result)),
        output !== null && section("Stored by the workflow", json(output)),
      ),
    ];
  },
};

function facts(found) {
  const { job, due_at: due } = found;
  const waits = waitsFor(found) ?? (found.waits_for && [words(found.waits_for), found.advice].filter(Boolean).join(": "));
  const fact = (name, ...value) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value));
  return h(
    "dl",
    { class: "facts" },
    fact("Phase", h("a", { href: `/jobs?workflow=${job.workflow}&phase=${job.phase}` }, job.phase)),
    fact("Errors", `${job.attempts} of ${job.max_attempts}`),
    job.crashes > 0 && fact("Crashes", job.crashes),
    fact("Created", when(job.created_at)),
    job.completed_at
      ? fact("Took", duration(seconds(job.created_at, job.completed_at)))
      : fact("Age", duration(Math.floor(seconds(job.created_at)))),
    job.completed_at && fact("Ended", when(job.completed_at)),
    waits && fact("Waits for", waits),
    due && !found.waiting && fact("Due", when(due)),
    found.parent && fact("Child of", parentLink(found)),
    job.progress_total && fact("Progress", progress(job.progress_done ?? 0, job.progress_total, { label: "Progress" })),
    job.priority !== null && fact("Priority", job.priority),
    job.rate_limit && fact("Rate limit", h("a", { href: "/limits" }, job.rate_limit)),
    job.batch_id && fact("Batch", h("a", { class: "mono", title: job.batch_id, href: `/batches/${job.batch_id}` }, short(job.batch_id))),
    job.locked_by && fact("Worker", h("a", { class: "mono", href: `/workers/${job.locked_by}` }, job.locked_by)),
    fact(
      "Trace id",
      h("span", { class: "mono wrap" }, job.trace_id),
      " ",
      copyButton(job.trace_id, "the trace id"),
    ),
  );
}

function actions(job, { refresh }, body) {
  const name = `job ${short(job.id)}`;
  if (job.status === "failed")
    return [
      button("Replay", () => replay(job, name, refresh), "primary"),
      body && button("Edit and replay…", () => edit(job, name, body, refresh)),
      button("Discard", () => discard(job, name, refresh)),
    ];
  if (job.status === "cancelled") return button("Replay", () => replay(job, name, refresh));
  if (ENDED.has(job.status)) return null;
  return button("Cancel", () => cancel(job, name, refresh), "danger");
}

function cancel(job, name, refresh) {
  ask({
    title: `Cancel ${name}?`,
    text: "Nothing of a running attempt is kept. It can be replayed.",
    yes: "Cancel the job",
    danger: true,
    fields: [
      field(
        "Reason",
        h("input", { name: "reason", maxlength: 1000, value: "cancelled in the dashboard", required: true }),
        "Kept with the job.",
      ),
    ],
    act: async ({ reason }) => {
      await post(`/v1/jobs/${job.id}/cancel`, { reason });
      await refresh();
      return `Cancelled ${name}.`;
    },
  });
}

function replay(job, name, refresh) {
  ask({
    title: `Replay ${name}?`,
    text: `Its phase ${job.phase} starts again with fresh budgets.`,
    yes: "Replay the job",
    act: async () => {
      await post(`/v1/jobs/${job.id}/replay`);
      await refresh();
      return `Started ${name} again.`;
    },
  });
}

function edit(job, name, body, refresh) {
  const text = h("textarea", { name: "body", rows: 12, spellcheck: "false", class: "mono", required: true });
  text.value = JSON.stringify(body, null, 2);
  ask({
    title: `Replay ${name} with another body?`,
    text: `Its phase ${job.phase} starts again with fresh budgets. What earlier phases returned stays.`,
    yes: "Replay the job",
    fields: [field("Body", text)],
    act: async ({ body }) => {
      let parsed;
      try {
        parsed = JSON.parse(body);
      } catch (problem) {
        throw new Error(`This is not JSON: ${problem.message}`);
      }
      await post(`/v1/jobs/${job.id}/replay`, { body: parsed });
      await refresh();
      return `Started ${name} again.`;
    },
  });
}

function discard(job, name, refresh) {
  ask({
    title: `Discard ${name}?`,
    text: "It leaves the dead letters, becomes cancelled and keeps your reason.",
    yes: "Discard the job",
    danger: true,
    fields: [field("Reason", h("input", { name: "reason", maxlength: 1000, required: true }))],
    act: async ({ reason }) => {
      await post("/v1/dead/discard", { ids: [job.id], reason });
      await refresh();
      return `Discarded ${name}.`;
    },
  });
}

const attemptColumns = (job, context) => [
  ...ATTEMPTS,
  { name: "Error", wide: true, cell: (one) => errorOf(job, one, context) },
];

const ATTEMPTS = [
  { name: "Outcome", cell: (one) => pill(one.outcome.replace("_", " "), one.outcome) },
  { name: "Phase", cell: (one) => one.phase },
  { name: "Try", number: true, cell: (one) => one.attempt },
  { name: "Started", cell: (one) => (one.started_at ? moment(one.started_at) : "–") },
  {
    name: "Ran",
    number: true,
    cell: (one) => (one.started_at ? duration(seconds(one.started_at, one.finished_at)) : "–"),
  },
  { name: "Worker", cell: (one) => h("span", { class: "mono soft" }, one.worker ?? "–") },
];

const STEPS = [
  { name: "Step", cell: (one) => one.name },
  { name: "Phase", cell: (one) => one.phase },
  { name: "Kept", cell: (one) => moment(one.at) },
  { name: "Bytes", number: true, cell: (one) => one.size.toLocaleString("en") },
  { name: "Result", wide: true, cell: (one) => cut(one.preview, 160) },
];
