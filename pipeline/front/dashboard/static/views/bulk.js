// What is done with many jobs, and who began it.

import { get } from "/static/api.js";
import { bulkCard } from "/static/bulk.js";
import { h } from "/static/dom.js";
import { heading } from "/static/parts.js";

export const bulk = {
  title: () => "Bulk actions",
  every: 2,
  load: async () => get("/v1/bulk"),
  render(found, context) {
    const shown = found.filter((one) => one.action !== "canary");
    const open = shown.filter((one) => !one.ended_at).length;
    return [
      heading("Bulk actions", { count: `${open} under way` }),
      h(
        "p",
        { class: "lead", "data-key": "lead" },
        "What is done with many jobs: replays at a rate from the dead letters, and whatever matches a filter of the jobs. The leader of maintenance does it, whoever looks. Those that ended stay here for a day.",
      ),
      shown.map((one) => bulkCard(one, context)),
      !shown.length && h("p", { class: "empty", "data-key": "empty" }, "Nothing is under way."),
    ];
  },
};
