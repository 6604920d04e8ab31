// One project: how far it is, what was decided, its records.

import { get, post, queryString, remove } from "/static/api.js";
import { ask } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { count } from "/static/format.js";
import { button, cut, heading, pager, pill, progress, select, table, when } from "/static/parts.js";
import { go, refine } from "/static/router.js";
import { kind } from "./projects.js";

const STATES = ["NEW", "QUEUED", "COMPLETED", "FAILED", "CANCELLED"];
const DECISIONS = ["matched", "ambiguous", "none"];

export default {
  title: ({ params }) => `Project ${params.id}`,
  every: 2,
  async load({ params, query: { status, decision, cursor } }) {
    const path = `/v1/projects/${encodeURIComponent(params.id)}`;
    const [found, tasks] = await Promise.all([get(path), get(`${path}/tasks`, { status, decision, cursor })]);
    return { found, tasks };
  },
  render({ found, tasks }, context) {
    const { total = 0, failed = 0, completed = 0, cancelled = 0 } = found.tasks;
    const { query, params } = context;
    const fact = (name, ...value) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value));
    return [
      h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/projects" }, "Projects")),
      heading([pill(found.status.toLowerCase(), kind(found.status)), h("span", null, found.name)], {
        aside: context.mayAct ? actions(found, context) : null,
      }),
      h(
        "dl",
        { class: "facts" },
        fact("Progress", progress(completed + failed + cancelled, total, { bad: failed, label: "Progress" })),
        fact("Records", count(total)),
        DECISIONS.map((name) => fact(name, count(found.decisions[name] ?? 0))),
        fact("Failed", count(failed)),
        fact("Round", found.round),
        fact("Created", when(found.created_at)),
        found.completed_at && fact("Completed", when(found.completed_at)),
      ),
      h(
        "search",
        { class: "filters" },
        filter("status", "All states", STATES, query),
        filter("decision", "All decisions", DECISIONS, query),
      ),
      table({
        label: "Records",
        columns: COLUMNS,
        rows: tasks.items,
        key: (task) => String(task.id),
        empty: "No record matches.",
      }),
      pager(query, tasks.next, (part) => `/projects/${params.id}${queryString(part)}`),
    ];
  },
};

function filter(name, all, values, query) {
  return h(
    "label",
    null,
    h("span", { class: "hidden" }, name),
    select(
      { name, onchange: (event) => refine({ [name]: event.target.value, cursor: null }) },
      [["", all], ...values.map((value) => [value, value.toLowerCase()])],
      query[name],
    ),
  );
}

function actions(found, { refresh }) {
  const change = (title, text, yes, act, danger) =>
    button(
      yes,
      () =>
        ask({
          title,
          text,
          yes,
          danger,
          act: async () => {
            const said = await act();
            await refresh();
            return said;
          },
        }),
      danger ? "danger quiet" : "primary",
    );
  const path = `/v1/projects/${found.id}`;
  return [
    found.status === "MATCHING"
      ? change(
          `Cancel ${found.name}?`,
          "What is queued or running is cancelled; what is decided stays.",
          "Cancel matching",
          async () => `Cancelled ${count((await post(`${path}/cancel`)).cancelled)} tasks.`,
          true,
        )
      : change(
          `Match ${found.name}?`,
          "One job for each record; earlier decisions are replaced.",
          "Match",
          async () => `Started ${count((await post(`${path}/match`)).tasks)} tasks.`,
        ),
    button(
      "Delete",
      () =>
        ask({
          title: `Delete ${found.name}?`,
          text: "With its records, tasks and jobs, also those that run. This cannot be undone.",
          danger: true,
          yes: "Delete the project",
          act: async () => {
            await remove(path);
            go("/projects");
            return `Deleted ${found.name}.`;
          },
        }),
      "danger quiet",
    ),
  ];
}

const COLUMNS = [
  { name: "State", cell: (task) => pill(task.status.toLowerCase(), kind(task.status)) },
  {
    name: "Record",
    wide: true,
    cell: (task) => h("span", null, task.name, task.external_id && h("span", { class: "why" }, task.external_id)),
  },
  { name: "Decision", cell: (task) => task.decision ?? h("span", { class: "soft" }, "–") },
  { name: "Item", cell: (task) => h("span", { class: "mono" }, task.qid ?? "–") },
  { name: "Score", number: true, cell: (task) => (task.score === null ? "–" : task.score.toFixed(2)) },
  { name: "Why", wide: true, cell: (task) => cut(task.error_message ?? task.why, 160) },
];
