// One workflow: its graph, how long its phases and its jobs take, its errors, its schedules and hooks.

import { get } from "/static/api.js";
import { chart } from "/static/chart.js";
import { h } from "/static/dom.js";
import { count, duration, now, percent } from "/static/format.js";
import { graph } from "/static/graph.js";
import { heading, section, segments } from "/static/parts.js";
import { schedulesTable } from "/static/views/schedules.js";

const RANGES = [
  ["1", "1 h"],
  ["6", "6 h"],
  ["24", "24 h"],
  ["168", "7 days"],
];
const KINDS = ["accent", "green", "amber", "red", "blue", "violet"];

export const workflow = {
  title: ({ params }) => `Workflow ${params.workflow}`,
  every: 10,
  async load({ params: { workflow: name }, query, live }) {
    const hours = RANGES.some(([value]) => value === query.hours) ? Number(query.hours) : 6;
    const [known, history, schedules, stats] = await Promise.all([
      get(`/v1/workflows/${name}`),
      get(`/v1/workflows/${name}/history`, { hours }),
      get("/v1/schedules", { workflow: name, limit: 100 }),
      live.stats ?? get("/v1/stats"),
    ]);
    return { hours, known, history, schedules: schedules.items, stats };
  },
  render({ hours, known, history, schedules, stats: loaded }, context) {
    const { name } = known;
    const phases = (context.live.stats ?? loaded).phases.filter((phase) => phase.workflow === name);
    return [
      crumbs(),
      heading(name, {
        aside: segments("Time shown", RANGES, String(hours), (value) => `/workflows/${name}?hours=${value}`),
      }),
      facts(known, history.whole),
      graph({ name, phases, known: history.phases, schedules, hooks: known.hooks }),
      h("div", { class: "charts", "data-key": "charts" }, charts(history, hours, phases)),
      schedules.length > 0 &&
        h("div", { "data-key": "schedules" }, section("Schedules", schedulesTable(schedules, context))),
    ];
  },
};

const crumbs = () =>
  h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/workflows" }, "Workflows"));

function facts({ name, turns }, whole) {
  const fact = (title, ...value) => h("div", { "data-key": title }, h("dt", null, title), h("dd", null, value));
  const ended = whole.succeeded + whole.errors;
  return h(
    "dl",
    { class: "facts" },
    fact("Jobs that ended", h("a", { href: `/jobs?workflow=${name}` }, count(ended))),
    fact("Of these failed", ended ? percent(whole.errors / ended) : "–"),
    fact("Half took less than", duration(whole.p50)),
    fact("99 % took less than", duration(whole.p99)),
    turns &&
      fact(
        "Keys",
        h("a", { href: `/workflows/${name}/keys` }, turns.field),
        [turns.per_key && `, ${turns.per_key} at once`, turns.in_order && ", in order"].filter(Boolean),
      ),
    fact("Audit", h("a", { href: `/audit?subject=${name}` }, "who changed it")),
  );
}

function charts({ points, step_seconds: seconds }, hours, phases) {
  const step = seconds * 1000;
  const end = Math.floor(now() / step) * step;
  const length = Math.round((hours * 3_600_000) / step);
  const times = Array.from({ length: length + 1 }, (_, i) => end - (length - i) * step);
  const found = new Map(points.map((point) => [Date.parse(point.at), point]));
  const values = (pick) => times.map((time) => (found.has(time) ? (pick(found.get(time)) ?? 0) : 0));
  const minutes = seconds / 60;
  // Where nothing ended there is no duration.
  const durations = { times, show: (value) => (value ? duration(value) : "–"), top: 0.1 };
  return [
    chart({
      ...durations,
      title: "Whole jobs",
      series: [
        { name: "p99", kind: "amber", values: values(({ whole }) => whole.p99) },
        { name: "p50", kind: "accent", values: values(({ whole }) => whole.p50) },
      ],
    }),
    chart({
      ...durations,
      title: "Phases, p99",
      series: phases.slice(0, KINDS.length).map(({ phase }, n) => ({
        name: phase,
        kind: KINDS[n],
        values: values((point) => point.phases[phase]?.p99),
      })),
    }),
    chart({
      times,
      show: (value) => count(Math.round(value)),
      top: 10,
      title: "Jobs per minute",
      series: [
        { name: "succeeded", kind: "green", values: values(({ whole }) => whole.succeeded / minutes) },
        { name: "failed", kind: "red", values: values(({ whole }) => whole.errors / minutes) },
      ],
    }),
    chart({
      times,
      show: percent,
      top: 0.05,
      title: "Error rate",
      series: [{ name: "of attempts", kind: "amber", values: values(({ phases }) => errorRate(Object.values(phases))) }],
    }),
  ];
}

function errorRate(phases) {
  const errors = phases.reduce((total, one) => total + one.errors, 0);
  const all = phases.reduce((total, one) => total + one.errors + one.succeeded, 0);
  return all ? errors / all : 0;
}
