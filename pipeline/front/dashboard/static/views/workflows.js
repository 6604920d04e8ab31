// Workflows: their phases in order, and how each is just now.

import { get } from "/static/api.js";
import { h } from "/static/dom.js";
import { capped, percent, rate } from "/static/format.js";
import { waitingOf } from "/static/history.js";
import { heading, pill, table } from "/static/parts.js";

export const workflows = {
  title: () => "Workflows",
  every: 5,
  load: async ({ live }) => live.stats ?? get("/v1/stats"),
  render(loaded, { live }) {
    const rows = byWorkflow((live.stats ?? loaded).phases);
    return [
      heading("Workflows", { count: String(rows.length) }),
      table({
        label: "Workflows",
        columns: COLUMNS,
        rows,
        key: (one) => one.name,
        empty: "No workflow is registered yet: start a worker, or run pipeline migrate.",
      }),
    ];
  },
};

export function byWorkflow(phases) {
  const found = new Map();
  for (const phase of phases) {
    if (!found.has(phase.workflow)) found.set(phase.workflow, { name: phase.workflow, phases: [] });
    found.get(phase.workflow).phases.push(phase);
  }
  return [...found.values()];
}

const sum = (one, pick) => one.phases.reduce((total, phase) => total + pick(phase), 0);
const some = (value) => (value ? capped(value) : h("span", { class: "zero" }, "0"));

function errorRate(one) {
  const ended = sum(one, (phase) => phase.ended_per_second);
  return ended ? Math.max(0, 1 - sum(one, (phase) => phase.succeeded_per_second) / ended) : 0;
}

const COLUMNS = [
  { name: "Workflow", cell: (one) => h("a", { href: `/workflows/${one.name}` }, one.name) },
  {
    name: "Phases",
    wide: true,
    cell: (one) =>
      h(
        "span",
        null,
        one.phases.map((phase, n) => [n > 0 && " → ", phase.phase, phase.paused && [" ", pill("paused")]]),
      ),
  },
  { name: "Waiting", number: true, cell: (one) => some(sum(one, (phase) => waitingOf(phase) + phase.queued)) },
  { name: "Running", number: true, cell: (one) => some(sum(one, (phase) => phase.running)) },
  {
    name: "Failed",
    number: true,
    cell: (one) => {
      const failed = sum(one, (phase) => phase.failed);
      return failed ? h("a", { href: `/dead?workflow=${one.name}`, class: "bad" }, capped(failed)) : some(0);
    },
  },
  { name: "Per second", number: true, cell: (one) => rate(sum(one, (phase) => phase.ended_per_second)) },
  { name: "Errors", number: true, cell: (one) => percent(errorRate(one)) },
];
