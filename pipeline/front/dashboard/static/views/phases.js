// Phases: what is in force, and pausing, resuming and setting it while jobs run.

import { get, post } from "/static/api.js";
import { ask, attempt, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { capped } from "/static/format.js";
import { waitingOf } from "/static/history.js";
import { button, heading, pill, table, when } from "/static/parts.js";

export const phasesView = {
  title: () => "Phases",
  every: 5,
  load: async ({ live }) => live.stats ?? get("/v1/stats"),
  render(loaded, context) {
    const rows = (context.live.stats ?? loaded).phases;
    const everything = { name: "every phase", which: {} };
    return [
      heading("Phases", {
        count: `${rows.filter((phase) => phase.paused).length} paused`,
        aside: context.mayAct && [
          button("Pause everything…", () => pause(everything, context), "danger quiet"),
          button("Resume everything", () => resume(everything, context)),
        ],
      }),
      h(
        "p",
        { class: "lead", "data-key": "lead" },
        "What runs in a paused phase finishes; everything else waits, at no cost. A pool or a rate that is set here stays over deploys, until it is set back to what the code declares. ",
        h("a", { href: "/audit" }, "Who did what"),
      ),
      table({
        label: "Phases in force",
        columns: columns(context),
        rows,
        key: (phase) => phase.queue,
        empty: "No phase is registered yet: start a worker, or run pipeline migrate.",
      }),
    ];
  },
};

const columns = (context) => [
  {
    name: "Phase",
    cell: (phase) =>
      h(
        "span",
        { class: "phase" },
        h("a", { href: `/workflows/${phase.workflow}` }, phase.workflow),
        " › ",
        h("a", { href: `/jobs?workflow=${phase.workflow}&phase=${phase.phase}` }, phase.phase),
      ),
  },
  { name: "State", cell: state },
  { name: "Waiting", number: true, cell: (phase) => capped(waitingOf(phase)) },
  { name: "Running", number: true, cell: (phase) => capped(phase.running) },
  { name: "Pool", cell: (phase) => inForce(phase.pool, phase.declared_pool, phase.pool_is_set) },
  {
    name: "Rate",
    cell: (phase) =>
      inForce(
        rateOf(phase.throttle_count, phase.throttle_seconds),
        rateOf(phase.declared_throttle_count, phase.declared_throttle_seconds),
        phase.rate_is_set,
      ),
  },
  ...(context.mayAct ? [{ name: "Change", cell: (phase) => actions(phase, context) }] : []),
];

function state(phase) {
  if (!phase.paused) return pill("open", "succeeded");
  return h("span", null, pill("paused"), phase.paused_until ? [" resumes ", when(phase.paused_until)] : " until resumed");
}

/** As people write it: 20/s, 100/min, 5/h; in the shortest time that gives a whole number. */
function rateOf(count, seconds) {
  if (!count) return null;
  const units = [
    [1, "s"],
    [60, "min"],
    [3600, "h"],
  ];
  const whole = units.find(([size]) => isWhole((count / seconds) * size)) ?? units[2];
  return `${Number(((count / seconds) * whole[0]).toPrecision(6))}/${whole[1]}`;
}

const isWhole = (value) => value > 0.5 && Math.abs(value - Math.round(value)) < 1e-6 * value;

function inForce(value, declared, isSet) {
  const shown = value ?? h("span", { class: "soft" }, "no limit");
  if (!isSet) return shown;
  return h("span", null, shown, " ", h("span", { class: "why" }, `set here; declared ${declared ?? "no limit"}`));
}

function actions(phase, context) {
  const one = { name: phase.queue, which: { workflow: phase.workflow, phase: phase.phase } };
  return h(
    "span",
    { class: "row-actions" },
    phase.paused
      ? button("Resume", () => resume(one, context), "tiny")
      : button("Pause…", () => pause(one, context), "tiny"),
    button("Set…", () => set(phase, context), "tiny"),
  );
}

const why = () =>
  field("Reason", h("input", { name: "reason", maxlength: 1000 }), "Kept in the audit; may be left empty.");
const given = (value) => (value?.trim() ? value.trim() : null);

function pause({ name, which }, { refresh }) {
  ask({
    title: `Pause ${name}?`,
    text: "Nothing is sent to it any more. What runs finishes its phase.",
    fields: [
      field(
        "Minutes",
        h("input", { name: "minutes", type: "number", min: "0.1", step: "any" }),
        "Empty: until somebody resumes it.",
      ),
      why(),
    ],
    yes: "Pause",
    act: async ({ minutes, reason }) => {
      const seconds = minutes ? Number(minutes) * 60 : null;
      const found = await post("/v1/phases/pause", { ...which, seconds, reason: given(reason) });
      await refresh();
      return `Paused ${found.length === 1 ? found[0].queue : `${found.length} phases`}.`;
    },
  });
}

const resume = ({ name, which }, { refresh }) =>
  attempt(async () => {
    await post("/v1/phases/resume", which);
    await refresh();
    return `Resumed ${name}.`;
  });

function set(phase, { refresh }) {
  const rate = rateOf(phase.throttle_count, phase.throttle_seconds);
  const fields = [
    field(
      "Pool",
      h("input", { name: "pool", type: "number", min: "1", max: "10000", step: "1", value: phase.pool ?? "" }),
      `How many of its jobs run at once. Empty: no limit. The code declares ${phase.declared_pool ?? "no limit"}.`,
    ),
    field(
      "Rate",
      h("input", { name: "rate", maxlength: 40, value: rate ?? "", placeholder: "20/s, 100/min, 5/h" }),
      "How many messages are sent in a time. Empty: no limit.",
    ),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "declared", value: "yes" }), " As the code declares both"),
    why(),
  ];
  ask({
    title: `Set pool and rate of ${phase.queue}`,
    text: "It is in force at once, and a deploy leaves it.",
    fields,
    yes: "Set",
    act: async (wish) => {
      const body = { workflow: phase.workflow, phase: phase.phase, reason: given(wish.reason) };
      if (wish.declared) body.declared = ["pool", "rate"];
      else {
        const pool = given(wish.pool) === null ? null : Number(wish.pool);
        if (pool !== phase.pool) body.pool = pool;
        if (given(wish.rate) !== rate) body.rate = given(wish.rate);
      }
      await post("/v1/phases/set", body);
      await refresh();
      return `Set ${phase.queue}.`;
    },
  });
}
