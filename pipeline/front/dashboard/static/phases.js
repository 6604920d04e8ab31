// A row for each phase: its pool, what waits and why, its pace and its errors.

import { h } from "/static/dom.js";
import { capped, duration, percent, rate } from "/static/format.js";
import { waitingOf } from "/static/history.js";
import { pill, table, when } from "/static/parts.js";
import { words } from "/static/waits.js";

const SLOTS = 20;

export function phases(rows, workers) {
  const jobs = (phase, more = "") => `/jobs?workflow=${phase.workflow}&phase=${phase.phase}${more}`;
  const columns = [
    {
      name: "Phase",
      cell: (phase) =>
        h(
          "span",
          { class: "phase" },
          h("a", { href: `/workflows/${phase.workflow}`, class: "soft" }, phase.workflow),
          " › ",
          h("a", { href: jobs(phase) }, phase.phase),
        ),
    },
    { name: "Pool", cell: (phase) => [pool(phase, workers > 0), phase.pool_is_set && h("span", { class: "why" }, `set; declared ${phase.declared_pool ?? "no limit"}`)] },
    { name: "Waiting", cell: waiting, number: true },
    { name: "Queued", cell: (phase) => zero(phase.queued), number: true },
    { name: "Running", cell: (phase) => zero(phase.running), number: true },
    { name: "Retrying", cell: (phase) => zero(phase.retryable), number: true },
    {
      name: "Failed",
      cell: (phase) =>
        phase.failed
          ? h("a", { href: `/dead?workflow=${phase.workflow}`, class: "bad" }, capped(phase.failed))
          : zero(0),
      number: true,
    },
    {
      name: "Oldest",
      cell: (phase) => (phase.oldest_seconds === null ? zero(0, "–") : duration(phase.oldest_seconds)),
      number: true,
    },
    {
      name: "Per second",
      cell: (phase) => (phase.ended_per_second ? rate(phase.ended_per_second) : zero(0)),
      number: true,
    },
    { name: "Errors", cell: (phase) => (phase.error_rate ? percent(phase.error_rate) : zero(0, "–")), number: true },
  ];
  return table({
    label: "Phases",
    columns,
    rows,
    key: (phase) => phase.queue,
    empty: "No phase is registered yet: start a worker, or run pipeline migrate.",
  });
}

const zero = (value, text = "0") => (value ? capped(value) : h("span", { class: "zero" }, text));

function waiting(phase) {
  const reasons = Object.entries(phase.waiting);
  const end = phase.paused_until ? [" resumes ", when(phase.paused_until)] : " until resumed";
  const paused = phase.paused && [" ", h("a", { href: "/phases" }, pill("paused")), end];
  if (!reasons.length) return h("span", null, zero(0), paused);
  return h(
    "span",
    null,
    capped(waitingOf(phase)),
    paused,
    h("span", { class: "why" }, reasons.map(([why, n]) => `${words(why)} ${capped(n)}`).join(", ")),
  );
}

/** A square for each processor, and the same in words. */
function pool({ pool, busy, error, running }, served) {
  if (pool === null) return h("span", { class: "soft" }, running ? `${running} busy, no limit` : "no limit");
  const working = busy - error;
  const idle = Math.max(0, pool - busy);
  const free = served ? "idle" : "free, no worker";
  const words = [working && `${working} busy`, error && `${error} in error`, idle && `${idle} ${free}`]
    .filter(Boolean)
    .join(", ");
  const state = (n) => (n < error ? "error" : n < busy ? "busy" : "idle");
  const part = (n) => ({ width: `${(n / pool) * 100}%` });
  const drawn =
    pool <= SLOTS
      ? Array.from({ length: pool }, (_, n) => h("i", { class: state(n) }))
      : h(
          "span",
          { class: "many" },
          h("i", { class: "error", style: part(error) }),
          h("i", { class: "busy", style: part(working) }),
        );
  return h(
    "span",
    { class: "pool" },
    h("span", { class: "slots", "aria-hidden": "true" }, drawn),
    h("span", { class: "words" }, words),
  );
}
