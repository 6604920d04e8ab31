// The cluster at a glance: what waits, what runs, what goes wrong, and every phase with its pool.

import { get } from "/static/api.js";
import { chart } from "/static/chart.js";
import { h } from "/static/dom.js";
import { capped, count, duration, percent, rate } from "/static/format.js";
import { hands } from "/static/live.js";
import { series, waitingOf } from "/static/history.js";
import { heading, section } from "/static/parts.js";
import { phases } from "/static/phases.js";

const RANGES = [
  ["1", "1 h"],
  ["3", "3 h"],
  ["24", "24 h"],
  ["168", "7 days"],
];

export const overview = {
  title: () => "Overview",
  every: 15,
  async load({ query, live }) {
    const hours = RANGES.some(([value]) => value === query.hours) ? Number(query.hours) : 3;
    const [history, stats] = await Promise.all([get("/v1/stats/history", { hours }), live.stats ?? get("/v1/stats")]);
    return { hours, history, stats };
  },
  render({ hours, history, stats: loaded }, { live }) {
    const stats = live.stats ?? loaded;
    const found = series(history, hours, stats);
    return [
      heading("Overview", { aside: ranges(hours) }),
      tiles(stats),
      h("div", { class: "charts" }, charts(found)),
      section("Phases", phases(stats.phases, hands(stats))),
    ];
  },
};

function ranges(hours) {
  return h(
    "nav",
    { class: "segments", "aria-label": "Time shown in charts" },
    RANGES.map(([value, text]) =>
      h(
        "a",
        { href: value === "3" ? "/" : `/?hours=${value}`, "aria-current": Number(value) === hours ? "true" : null },
        text,
      ),
    ),
  );
}

function tiles(stats) {
  const total = (pick) => stats.phases.reduce((sum, phase) => sum + pick(phase), 0);
  const ended = total((phase) => phase.ended_per_second);
  const wrong = ended ? 1 - total((phase) => phase.succeeded_per_second) / ended : 0;
  const failed = total((phase) => phase.failed);
  const { alive = 0, missing = 0 } = stats.workers;
  return h(
    "dl",
    { class: "tiles" },
    tile("Waiting", capped(total(waitingOf)), "not sent yet", "/jobs?status=pending"),
    tile("Queued", capped(total((phase) => phase.queued)), "in RabbitMQ", "/jobs?status=pending"),
    tile("Running", capped(total((phase) => phase.running)), "now", "/jobs?status=running"),
    tile("Throughput", `${rate(ended)}/s`, "in the last minute"),
    tile("Error rate", percent(Math.max(0, wrong)), "in the last minute", null, wrong > 0.05 && "bad"),
    tile("Dead letters", capped(failed), failed ? "need a decision" : "none", "/dead", failed > 0 && "bad"),
    tile(
      "Workers",
      count(alive),
      missing ? `alive, ${missing} missing` : "alive",
      "/workers",
      (missing > 0 || !alive) && "bad",
    ),
    tile(
      "Relay lag",
      duration(stats.relay_lag_seconds),
      "behind what is due",
      null,
      stats.relay_lag_seconds > 10 && "bad",
    ),
  );
}

function tile(name, value, note, href, state) {
  const shown = h(
    "dd",
    { class: "value" },
    href ? h("a", { href, "aria-label": `${name}: ${value} ${note}` }, value) : value,
  );
  return h("div", { class: `tile ${state || ""}` }, h("dt", null, name), shown, h("dd", { class: "note" }, note));
}

function charts({ times, waiting, running, throughput, errors, errorRate, dead }) {
  const counts = { times, show: (value) => count(Math.round(value)), top: 10 };
  const shares = { times, show: percent, top: 0.05 };
  return [
    chart({
      ...counts,
      title: "Queue depth",
      series: [
        { name: "waiting", kind: "accent", values: waiting },
        { name: "running", kind: "green", values: running },
      ],
    }),
    chart({
      ...counts,
      title: "Throughput per minute",
      series: [
        { name: "succeeded", kind: "green", values: throughput },
        { name: "errors", kind: "red", values: errors },
      ],
    }),
    chart({
      ...shares,
      title: "Error rate",
      series: [{ name: "of attempts", kind: "amber", values: errorRate }],
    }),
    chart({
      ...shares,
      title: "Dead-lettered share",
      series: [{ name: "of ended jobs", kind: "red", values: dead }],
    }),
  ];
}
