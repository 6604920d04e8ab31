// The keys of a workflow: who waits for a turn; pausing, resuming and weighing one.

import { get, post, queryString } from "/static/api.js";
import { ask, attempt, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { count } from "/static/format.js";
import { button, heading, pill, table, when } from "/static/parts.js";

const MANY = 1000;
const why = () => field("Reason", h("input", { name: "reason", maxlength: 1000 }), "Kept in the audit; may be left empty.");
const given = (value) => (value?.trim() ? value.trim() : null);

export const keys = {
  title: ({ params }) => `Keys of ${params.workflow}`,
  every: 3,
  load: async ({ params, query }) => get("/v1/keys", { workflow: params.workflow, from: query.from }),
  render({ items, next }, context) {
    const { workflow } = context.params;
    return [
      h(
        "nav",
        { class: "crumbs", "aria-label": "Breadcrumb" },
        h("a", { href: "/workflows" }, "Workflows"),
        " › ",
        h("a", { href: `/workflows/${workflow}` }, workflow),
      ),
      heading("Keys"),
      h("p", { class: "lead", "data-key": "lead" }, "Keys with unfinished jobs, in their order. They take turns: one with many jobs does not hold up the others."),
      table({
        label: "Keys",
        columns: [...COLUMNS, ...(context.mayAct ? [{ name: "Change", cell: (one) => change(one, context) }] : [])],
        rows: items,
        key: (one) => `key ${one.key}`,
        empty: "No key has unfinished jobs.",
      }),
      (next !== null || context.query.from) &&
        h(
          "nav",
          { class: "pager", "aria-label": "Pages" },
          context.query.from && h("a", { href: `/workflows/${workflow}/keys`, class: "button" }, "First page"),
          next !== null && h("a", { href: `/workflows/${workflow}/keys${queryString({ from: next })}`, class: "button" }, "Next page"),
        ),
    ];
  },
};

const COLUMNS = [
  { name: "Key", cell: (one) => one.key || h("span", { class: "soft" }, "none") },
  {
    name: "State",
    cell: (one) =>
      one.paused
        ? h("span", null, pill("paused"), one.paused_until ? [" resumes ", when(one.paused_until)] : " until resumed")
        : pill("open", "succeeded"),
  },
  { name: "Under way", number: true, cell: (one) => count(one.under_way) },
  { name: "Waiting for a turn", number: true, cell: (one) => (one.waiting >= MANY ? `${count(MANY)}+` : count(one.waiting)) },
  { name: "Jobs a turn", number: true, cell: (one) => count(one.weight) },
];

function change(one, context) {
  return h(
    "span",
    { class: "row-actions" },
    one.paused ? button("Resume", () => resume(one, context), "tiny") : button("Pause…", () => pause(one, context), "tiny"),
    button("Weigh…", () => weigh(one, context), "tiny"),
  );
}

const which = (one, { params }) => ({ workflow: params.workflow, key: one.key });

function pause(one, context) {
  ask({
    title: `Pause ${one.key || "jobs without a key"}?`,
    text: "None of its jobs begins any more. What is under way goes on.",
    fields: [
      field("Minutes", h("input", { name: "minutes", type: "number", min: "0.1", step: "any" }), "Empty: until somebody resumes it."),
      why(),
    ],
    yes: "Pause",
    act: async ({ minutes, reason }) => {
      await post("/v1/keys/pause", { ...which(one, context), seconds: minutes ? Number(minutes) * 60 : null, reason: given(reason) });
      await context.refresh();
      return `Paused ${one.key}.`;
    },
  });
}

const resume = (one, context) =>
  attempt(async () => {
    await post("/v1/keys/resume", which(one, context));
    await context.refresh();
    return `Resumed ${one.key}.`;
  });

function weigh(one, context) {
  ask({
    title: `How many jobs of ${one.key || "no key"} go in a turn?`,
    text: "Where one job of another key goes.",
    fields: [
      field("Jobs a turn", h("input", { name: "weight", type: "number", min: "1", max: "1000", step: "1", required: true, value: one.weight })),
      why(),
    ],
    yes: "Set",
    act: async ({ weight, reason }) => {
      await post("/v1/keys/weigh", { ...which(one, context), weight: Number(weight), reason: given(reason) });
      await context.refresh();
      return `${weight} jobs of ${one.key} go in each of its turns.`;
    },
  });
}
