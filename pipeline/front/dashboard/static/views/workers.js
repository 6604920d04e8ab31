// Worker processes and their heartbeats.

import { get } from "/static/api.js";
import { h } from "/static/dom.js";
import { about } from "/static/format.js";
import { heading, pill, table, when } from "/static/parts.js";

export const workers = {
  title: () => "Workers",
  every: 2,
  load: async () => get("/v1/workers"),
  render(rows) {
    const alive = rows.filter((worker) => worker.state === "alive").length;
    return [
      heading("Workers", { count: `${alive} alive` }),
      table({
        label: "Workers",
        columns: COLUMNS,
        rows,
        key: (worker) => worker.id,
        empty: "No worker has run in the last hour. Start one: dramatiq pipeline.actors --processes 4",
      }),
    ];
  },
};

const COLUMNS = [
  { name: "State", cell: (worker) => pill(worker.state) },
  { name: "Worker", cell: (worker) => h("span", { class: "mono", title: worker.id }, worker.id) },
  { name: "Pid", number: true, cell: (worker) => worker.pid },
  { name: "Threads busy", number: true, cell: (worker) => `${worker.running}/${worker.threads}` },
  {
    name: "Heartbeat",
    number: true,
    cell: (worker) => (["stopped", "died"].includes(worker.state) ? when(worker.heartbeat_at) : `${about(worker.age)} ago`),
  },
  { name: "Started", cell: (worker) => when(worker.started_at) },
  { name: "Queues", wide: true, cell: queues },
];

function queues(worker) {
  if (worker.queues.length <= 3) return worker.queues.join(", ") || "all";
  return h(
    "details",
    { class: "inline" },
    h("summary", null, `${worker.queues.length} queues`),
    worker.queues.join(", "),
  );
}
