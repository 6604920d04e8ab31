// Projects: records that are matched against Wikidata.

import { get, queryString } from "/static/api.js";
import { h } from "/static/dom.js";
import { heading, pager, pill, progress, table, when } from "/static/parts.js";

const SHOWN = 10;
export const kind = (status) =>
  ({
    NEW: "pending",
    QUEUED: "pending",
    MATCHING: "running",
    COMPLETED: "succeeded",
    FAILED: "failed",
    CANCELLED: "cancelled",
  })[status] ?? status;
const address = (query) => `/projects${queryString(query)}`;

export default {
  title: () => "Projects",
  every: 3,
  async load({ query: { cursor } }) {
    const page = await get("/v1/projects", { cursor });
    // How far a project is costs a look at its tasks: only for those that move.
    const moving = page.items.filter((project) => project.status === "MATCHING").slice(0, SHOWN);
    const details = await Promise.all(moving.map((project) => get(`/v1/projects/${project.id}`).catch(() => null)));
    return { ...page, done: new Map(details.filter(Boolean).map((project) => [project.id, project.done])) };
  },
  render({ items, next, done }, { query }) {
    const columns = [
      { name: "State", cell: (project) => pill(project.status.toLowerCase(), kind(project.status)) },
      { name: "Project", wide: true, cell: (project) => h("a", { href: `/projects/${project.id}` }, project.name) },
      {
        name: "Progress",
        cell: (project) =>
          done.has(project.id)
            ? progress(Math.round(done.get(project.id) * 1000), 1000, { label: project.name })
            : h("span", { class: "soft" }, "–"),
      },
      { name: "Rounds", number: true, cell: (project) => project.round },
      { name: "Created", cell: (project) => when(project.created_at) },
      { name: "Completed", cell: (project) => when(project.completed_at) },
    ];
    return [
      heading("Projects"),
      table({
        label: "Projects",
        columns,
        rows: items,
        key: (project) => String(project.id),
        empty: "No project yet. POST /v1/projects makes one.",
      }),
      pager(query, next, address),
    ];
  },
};
