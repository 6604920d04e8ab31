// Where a job's time went: one bar of sums, then a row for each phase with its stretches in their places.

import { h } from "/static/dom.js";
import { duration, moment, percent } from "/static/format.js";
import { pill, table } from "/static/parts.js";

const KINDS = [
  "queued",
  "throttled",
  "snoozed",
  "not due",
  "waiting for an event",
  "waiting for children",
  "backing off",
  "running",
  "failed",
];
const classOf = (kind) => kind.replaceAll(" ", "-");
const ROOM_FOR_WORDS = 9;

export function timeline(parts) {
  if (!parts.length) return h("p", { class: "empty" }, "Nothing has happened yet.");
  const begin = Math.min(...parts.map((part) => Date.parse(part.started_at)));
  const end = Math.max(...parts.map((part) => Date.parse(part.ended_at)));
  const phases = [...new Set(parts.map((part) => part.phase))];
  // One that this page does not know is grey, and counts.
  const kinds = [...new Set([...KINDS, ...parts.map((part) => part.part)])];
  const sums = kinds.map((kind) => [
    kind,
    parts.filter((part) => part.part === kind).reduce((sum, part) => sum + part.seconds, 0),
  ]).filter(([kind, sum]) => sum > 0 || parts.some((part) => part.part === kind));
  const all = sums.reduce((sum, [, one]) => sum + one, 0) || 1;
  return h(
    "div",
    { class: "timeline" },
    legend(sums, all, parts),
    h(
      "div",
      { class: "rows", role: "img", "aria-label": words(phases, parts) },
      phases.map((phase) =>
        h(
          "div",
          { class: "row" },
          h("span", { class: "name" }, phase),
          h(
            "div",
            { class: "rate_limit" },
            parts.filter((part) => part.phase === phase).map((part) => stretch(part, begin, end)),
          ),
        ),
      ),
      scale(begin, end),
    ),
    asTable(parts),
  );
}

const isBad = (part) => part.outcome && !["succeeded", "snoozed", "released"].includes(part.outcome);

function legend(sums, all, parts) {
  const key = (kind) => h("span", { class: `key ${classOf(kind)}`, "aria-hidden": "true" });
  return h(
    "ul",
    { class: "legend" },
    sums.map(([kind, sum]) =>
      h("li", null, key(kind), kind, h("b", null, duration(sum)), h("span", { class: "soft" }, percent(sum / all))),
    ),
    parts.some(isBad) && h("li", null, key("edge"), "ended in an error"),
  );
}

function stretch(part, begin, end) {
  const whole = Math.max(end - begin, 1);
  const left = ((Date.parse(part.started_at) - begin) / whole) * 100;
  const width = ((Date.parse(part.ended_at) - Date.parse(part.started_at)) / whole) * 100;
  const title = `${part.part} ${duration(part.seconds)}, try ${part.attempt}${part.outcome ? `: ${part.outcome}` : ""}`;
  const bad = isBad(part);
  return h(
    "span",
    { class: `stretch ${classOf(part.part)} ${bad ? "bad" : ""}`, title, style: { left: `${left}%`, width: `${width}%` } },
    width > ROOM_FOR_WORDS ? h("span", null, `${part.part} ${duration(part.seconds)}`) : null,
  );
}

function scale(begin, end) {
  return h(
    "div",
    { class: "row scale" },
    h("span", { class: "name" }),
    h(
      "div",
      { class: "rate_limit" },
      [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", null, part ? duration(((end - begin) / 1000) * part) : "0")),
    ),
  );
}

function words(phases, parts) {
  const said = phases.map(
    (phase) =>
      `${phase}: ${parts
        .filter((part) => part.phase === phase)
        .map((part) => `${part.part} ${duration(part.seconds)}`)
        .slice(0, 30)
        .join(", ")}`,
  );
  return `Timeline. ${said.join("; ")}`.slice(0, 2000);
}

function asTable(parts) {
  const columns = [
    { name: "Phase", cell: (part) => part.phase },
    { name: "Try", number: true, cell: (part) => part.attempt },
    { name: "Part", cell: (part) => part.part },
    { name: "From", cell: (part) => moment(part.started_at) },
    { name: "Time", number: true, cell: (part) => duration(part.seconds) },
    { name: "Outcome", cell: (part) => (part.outcome ? pill(part.outcome.replace("_", " "), part.outcome) : "") },
  ];
  return h(
    "details",
    { class: "more" },
    h("summary", null, "Timeline as a table"),
    table({
      label: "Timeline",
      columns,
      rows: parts.slice(-200),
      key: (part) => `${part.started_at} ${part.part} ${part.phase}`,
    }),
  );
}
