// A workflow as a graph: what starts it, its phases in order, what its ends submit.

import { h } from "/static/dom.js";
import { capped, duration, percent } from "/static/format.js";
import { waitingOf } from "/static/history.js";
import { pill } from "/static/parts.js";

/** A list in the order in which jobs pass: a screen reader reads it as one. `known` has what each phase did in the time shown. */
export function graph({ name, phases, known, schedules, hooks }) {
  const before = hooks.filter((hook) => hook.submits === name);
  const after = hooks.filter((hook) => hook.workflow === name);
  return h(
    "ol",
    { class: "graph", "aria-label": `Phases of ${name}, in their order` },
    (schedules.length > 0 || before.length > 0) && h("li", { class: "node edge", "data-key": "before" }, starts(schedules, before)),
    phases.map((phase) => h("li", { class: "node", "data-key": phase.queue }, node(phase, known[phase.phase]))),
    after.length > 0 && h("li", { class: "node edge", "data-key": "after" }, ends(after)),
  );
}

function starts(schedules, hooks) {
  return [
    h("h3", null, "Submitted by"),
    schedules.map((one) =>
      h("p", null, "schedule ", h("a", { href: `/schedules/${one.workflow}/${one.name}` }, one.name), one.paused_at && [" ", pill("paused")]),
    ),
    hooks.map((hook) => h("p", null, h("a", { href: `/workflows/${hook.workflow}` }, hook.workflow), ` when ${hook.event}`)),
  ];
}

const ends = (hooks) => [
  h("h3", null, "Then submits"),
  hooks.map((hook) => h("p", null, h("a", { href: `/workflows/${hook.submits}` }, hook.submits), ` when ${hook.event}`)),
];

function node(phase, did) {
  const jobs = (more) => `/jobs?workflow=${phase.workflow}&phase=${phase.phase}${more}`;
  const tries = did ? did.succeeded + did.errors : 0;
  return [
    h("h3", null, h("a", { href: jobs("") }, phase.phase), phase.paused && [" ", h("a", { href: "/phases" }, pill("paused"))]),
    h(
      "dl",
      null,
      fact("waiting", link(waitingOf(phase) + phase.queued, jobs("&status=pending"))),
      fact("running", link(phase.running, jobs("&status=running"))),
      fact("failed", link(phase.failed, jobs("&status=failed"), "bad")),
      fact("p50", duration(did?.p50)),
      fact("p99", duration(did?.p99)),
      fact("errors", tries ? percent(did.errors / tries) : "–"),
    ),
    phase.pool !== null && h("p", { class: "soft" }, `pool ${phase.busy} of ${phase.pool}`),
  ];
}

const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
const link = (value, href, kind = null) => (value ? h("a", { href, class: kind }, capped(value)) : h("span", { class: "zero" }, "0"));
