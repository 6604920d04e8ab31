// Worker processes: their heartbeats, which code they run, what they do, and draining one.

import { get, post } from "/static/api.js";
import { ask, attempt, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { about, bytes, count } from "/static/format.js";
import { button, heading, jobLink, pill, section, table, when } from "/static/parts.js";

const GONE = ["stopped", "died"];
const HERE = ["alive", "not_consuming", "draining"];

export const workers = {
  title: () => "Workers",
  every: 2,
  load: async () => get("/v1/workers"),
  render(rows, context) {
    const here = rows.filter((worker) => HERE.includes(worker.state));
    const versions = new Set(here.map((worker) => worker.version));
    return [
      heading("Workers", { count: `${here.filter((worker) => worker.state === "alive").length} alive` }),
      versions.size > 1 &&
        h(
          "p",
          { class: "banner", role: "status", "data-key": "versions" },
          `${versions.size} versions of the code run side by side: ${[...versions].join(", ")}`,
        ),
      table({
        label: "Workers",
        columns: [...COLUMNS, ...(context.mayAct ? [{ name: "Change", cell: (one) => change(one, context) }] : [])],
        rows,
        key: (worker) => worker.id,
        empty: "No worker has run in the last hour. Start one: dramatiq pipeline.actors --processes 4",
      }),
    ];
  },
};

const COLUMNS = [
  { name: "State", cell: (worker) => pill(worker.state) },
  { name: "Worker", cell: (worker) => h("a", { class: "mono", href: `/workers/${worker.id}` }, worker.id) },
  { name: "Pid", number: true, cell: (worker) => worker.pid },
  { name: "Threads busy", number: true, cell: (worker) => `${worker.running}/${worker.threads}` },
  { name: "Stuck", number: true, cell: (worker) => (worker.stuck ? pill(count(worker.stuck), "failed") : "0") },
  { name: "Memory", number: true, cell: (worker) => bytes(worker.memory) },
  { name: "Version", cell: (worker) => h("span", { class: "mono" }, worker.version || "–") },
  {
    name: "Heartbeat",
    number: true,
    cell: (worker) => (GONE.includes(worker.state) ? when(worker.heartbeat_at) : `${about(worker.age)} ago`),
  },
  { name: "Started", cell: (worker) => when(worker.started_at) },
  { name: "Queues", wide: true, cell: queues },
];

function queues(worker) {
  if (worker.queues.length <= 3) return worker.queues.join(", ") || "all";
  return h(
    "details",
    { class: "inline" },
    h("summary", null, `${worker.queues.length} queues`),
    worker.queues.join(", "),
  );
}

function change(worker, context) {
  if (!HERE.includes(worker.state)) return "";
  if (worker.state === "draining") return button("Take jobs again", () => resume(worker, context), "tiny");
  return button("Drain…", () => drain(worker, context), "tiny");
}

function drain(worker, { refresh }) {
  ask({
    title: "Drain this worker?",
    text: `${worker.id} takes nothing new and finishes what it has. It stays until it is stopped, or takes jobs again.`,
    fields: [field("Reason", h("input", { name: "reason", maxlength: 1000 }), "Kept in the audit; may be left empty.")],
    yes: "Drain",
    act: async ({ reason }) => {
      await post(`/v1/workers/${worker.id}/drain`, { reason: reason.trim() || null });
      await refresh();
      return "The worker is draining.";
    },
  });
}

const resume = (worker, { refresh }) =>
  attempt(async () => {
    await post(`/v1/workers/${worker.id}/resume`);
    await refresh();
    return "The worker takes jobs again.";
  });

export const worker = {
  title: () => "Worker",
  every: 2,
  load: async ({ params }) => get(`/v1/workers/${params.id}`),
  render({ worker: one, jobs }, context) {
    return [
      h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/workers" }, "Workers")),
      heading(one.id, { aside: [pill(one.state), context.mayAct && change(one, context)] }),
      h(
        "p",
        { class: "lead", "data-key": "lead" },
        `${one.host}, pid ${one.pid}, version ${one.version || "unknown"}, ${bytes(one.memory)} in memory. `,
        h("a", { href: `/audit?subject=worker+${one.id}` }, "What was done to it"),
      ),
      one.stuck_jobs.length > 0 &&
        section(
          "Stuck",
          h("p", null, "Threads are stuck in these jobs, which were settled without them: ", one.stuck_jobs.map((job) => [jobLink(job), " "])),
        ),
      section(
        "Runs now",
        table({
          label: "Jobs of the worker",
          columns: JOBS,
          rows: jobs,
          key: (job) => job.id,
          empty: one.state === "draining" ? "Nothing: it can be stopped." : "Nothing just now.",
        }),
      ),
    ];
  },
};

const JOBS = [
  { name: "Job", cell: (job) => jobLink(job.id) },
  { name: "Phase", cell: (job) => `${job.workflow}.${job.phase}` },
  { name: "Attempt", number: true, cell: (job) => job.attempts + 1 },
  { name: "Since", cell: (job) => when(job.updated_at) },
];
