// Limits: what jobs share outside, by name. Their rates, pauses and breakers; pausing, resuming and changing one.

import { get, post, queryString } from "/static/api.js";
import { ask, attempt, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { count, rate } from "/static/format.js";
import { button, heading, pill, table, when } from "/static/parts.js";
import { words } from "/static/waits.js";

const PAGE = 100;
const MANY = 1000;
const why = () => field("Reason", h("input", { name: "reason", maxlength: 1000 }), "Kept in the audit; may be left empty.");
const given = (value) => (value?.trim() ? value.trim() : null);

export const limits = {
  title: () => "Limits",
  every: 3,
  load: async ({ query }) => get("/v1/limits", { after: query.after, limit: PAGE }),
  render(rows, context) {
    return [
      heading("Limits", { count: `${rows.filter((one) => one.paused).length} paused` }),
      h(
        "p",
        { class: "lead", "data-key": "lead" },
        "Kept by all workers together. A job waits at the gate for its limit, at no cost. The rate of a phase, and its pause, are on the page ",
        h("a", { href: "/phases" }, "Phases"),
        ".",
      ),
      table({
        label: "Limits",
        columns: [...COLUMNS, ...(context.mayAct ? [{ name: "Change", cell: (one) => change(one, context) }] : [])],
        rows,
        key: (one) => one.name,
        empty: "No limit was used yet.",
      }),
      (rows.length === PAGE || context.query.after) &&
        h(
          "nav",
          { class: "pager", "aria-label": "Pages" },
          context.query.after && h("a", { href: "/limits", class: "button" }, "First page"),
          rows.length === PAGE && h("a", { href: `/limits${queryString({ after: rows.at(-1).name })}`, class: "button" }, "Next page"),
        ),
    ];
  },
};

const COLUMNS = [
  { name: "Limit", cell: (one) => one.name },
  { name: "State", cell: state },
  { name: "Breaker", cell: breaker },
  { name: "Calls a second", number: true, cell: (one) => (one.rate === null ? "no rate" : rate(one.rate)) },
  { name: "Burst", number: true, cell: (one) => (one.rate === null ? "–" : String(one.burst)) },
  { name: "Set by", cell: (one) => (one.rate_is_set ? "an operator or application" : one.template ? `the code, as ${one.template}` : "the code") },
  { name: "Jobs waiting", number: true, cell: (one) => (one.waiting >= MANY ? `${count(MANY)}+` : count(one.waiting)) },
];

function state(one) {
  if (!one.paused) return pill("open", "succeeded");
  const end = one.paused_until ? [" resumes ", when(one.paused_until)] : " until resumed";
  return h("span", null, pill("paused"), end, one.pause_reason && `: ${words(one.pause_reason)}`);
}

function breaker(one) {
  if (one.breaker === null) return h("span", { class: "soft" }, "none");
  if (one.breaker === "closed") return one.failures ? `closed, ${one.failures} failures in a row` : "closed";
  return h("span", null, pill(one.breaker, "failed"), one.last_error && ` ${one.last_error}`);
}

function change(one, context) {
  return h(
    "span",
    { class: "row-actions" },
    one.paused ? button("Resume", () => resume(one, context), "tiny") : button("Pause…", () => pause(one, context), "tiny"),
    button("Rate…", () => setRate(one, context), "tiny"),
  );
}

function pause(one, context) {
  ask({
    title: `Pause ${one.name}?`,
    text: "Its jobs wait at the gate, whatever their phase. What is under way goes on.",
    fields: [
      field("Minutes", h("input", { name: "minutes", type: "number", min: "0.1", step: "any" }), "Empty: until somebody resumes it."),
      why(),
    ],
    yes: "Pause",
    act: async ({ minutes, reason }) => {
      await post("/v1/limits/pause", { name: one.name, seconds: minutes ? Number(minutes) * 60 : null, reason: given(reason) });
      await context.refresh();
      return `Paused ${one.name}.`;
    },
  });
}

const resume = (one, context) =>
  attempt(async () => {
    await post("/v1/limits/resume", { name: one.name });
    await context.refresh();
    return `Resumed ${one.name}.`;
  });

function setRate(one, context) {
  ask({
    title: `The rate of ${one.name}`,
    text: "In force at once, also over deploys, until it is left to the code again.",
    fields: [field("Rate", h("input", { name: "rate", maxlength: 40 }), "Such as 20/s, 100/min or 5/h. Empty: as the code says."), why()],
    yes: "Set",
    act: async ({ rate: wish, reason }) => {
      const chosen = given(wish);
      await post("/v1/limits/set", { name: one.name, rate: chosen, declared: chosen === null, reason: given(reason) });
      await context.refresh();
      return chosen === null ? `${one.name} has the rate that the code declares.` : `${one.name} has ${chosen} now.`;
    },
  });
}
