// Outside sources: breaker and rate, and holding them by hand.

import { get, post } from "/static/api.js";
import { ask, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { capped, count } from "/static/format.js";
import { button, cut, heading, pill, select, table, when } from "/static/parts.js";

const WORDS = {
  closed: "closed",
  open: "breaker open",
  "half-open": "half open",
  probing: "probing",
  paused: "paused",
  disabled: "disabled",
};
const KINDS = { closed: "succeeded", open: "failed", "half-open": "retryable", probing: "running" };
const HELD = new Set(["open", "paused", "half-open", "probing"]);
const LONG = 20 * 365 * 86_400_000;

export default {
  title: () => "Sources",
  every: 2,
  load: async () => get("/v1/sources"),
  render(rows, context) {
    const columns = context.mayAct
      ? [...COLUMNS, { name: "Action", cell: (source) => action(source, context) }]
      : COLUMNS;
    return [
      heading("Sources", {
        count: `${rows.filter((source) => source.state === "closed").length} of ${rows.length} take jobs`,
      }),
      table({
        label: "Sources",
        columns,
        rows,
        key: (source) => source.id,
        empty: "No source is set up. The scrape workflow brings them: see docs/scraping.md.",
      }),
    ];
  },
};

const COLUMNS = [
  {
    name: "Source",
    cell: (source) => h("span", null, h("b", null, source.name), h("span", { class: "why" }, source.adapter)),
  },
  {
    name: "Breaker",
    cell: (source) => h("span", null, pill(WORDS[source.state] ?? source.state, KINDS[source.state] ?? source.state), until(source)),
  },
  { name: "Rate", number: true, cell: (source) => `${count(source.rate_limit_per_minute)}/min` },
  { name: "Waiting jobs", number: true, cell: (source) => capped(source.waiting) },
  {
    name: "Unread prices",
    number: true,
    cell: (source) =>
      source.unread ? h("a", { href: `/sources/${encodeURIComponent(source.id)}` }, capped(source.unread)) : count(0),
  },
  { name: "Failures in a row", number: true, cell: (source) => source.failure_streak },
  { name: "Opened", number: true, cell: (source) => `${count(source.times_opened)}×` },
  { name: "Last success", cell: (source) => when(source.last_success_at) },
  {
    name: "Last error",
    wide: true,
    cell: (source) =>
      source.last_error ? h("span", null, when(source.last_failure_at), cut(source.last_error, 120)) : when(null),
  },
];

function until(source) {
  if (!source.paused_until || !HELD.has(source.state)) return null;
  const endless = Date.parse(source.paused_until) - Date.now() > LONG;
  return h("span", { class: "why" }, endless ? "until resumed" : ["resumes ", when(source.paused_until)]);
}

function action(source, context) {
  if (source.state === "disabled") return null;
  return HELD.has(source.state)
    ? button("Resume", () => resume(source, context), "small")
    : button("Pause", () => pause(source, context), "small");
}

function pause(source, { refresh }) {
  const lengths = [
    ["", "Until resumed"],
    ["300", "5 minutes"],
    ["3600", "1 hour"],
    ["86400", "1 day"],
  ];
  ask({
    title: `Pause ${source.name}?`,
    text: "Its jobs wait at no cost: no attempt, no thread.",
    yes: "Pause the source",
    fields: [field("How long", select({ name: "seconds" }, lengths))],
    act: async ({ seconds }) => {
      await post(`/v1/sources/${encodeURIComponent(source.id)}/pause`, seconds ? { seconds: Number(seconds) } : {});
      await refresh();
      return `Paused ${source.name}.`;
    },
  });
}

function resume(source, { refresh }) {
  ask({
    title: `Resume ${source.name}?`,
    text: "Also an open breaker closes; the jobs that wait go out at the source's rate.",
    yes: "Resume the source",
    act: async () => {
      await post(`/v1/sources/${encodeURIComponent(source.id)}/resume`);
      await refresh();
      return `Resumed ${source.name}.`;
    },
  });
}
