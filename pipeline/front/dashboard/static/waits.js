// What a job waits for: an event that somebody tells it of, or its children; and telling it.

import { post } from "/static/api.js";
import { ask, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { count, moment, plural, short } from "/static/format.js";
import { button, cut, jobLink, pill, progress, section, table, when } from "/static/parts.js";

/** Reasons are the same words everywhere, with spaces. */
export const words = (reason) => reason.replaceAll("_", " ");

/** What it waits for, in a few words; null: nobody has to bring anything. */
export function waitsFor({ waiting, children }) {
  if (!waiting) return null;
  if (waiting.event !== null)
    return h(
      "span",
      null,
      "event ",
      h("b", null, waiting.event),
      waiting.until && [" until ", h("time", { datetime: waiting.until }, moment(waiting.until))],
    );
  const batch = children.find((one) => one.batch === waiting.batch);
  return batch ? `${count(batch.total - batch.ended)} of ${plural(batch.total, "child", "children")}` : "children";
}

/** The job that waits for this one. */
export const parentLink = ({ parent }) => parent && [`${parent.workflow} `, jobLink(parent.id)];

/** Its children, by the attempt that submitted them. */
export function childrenOf(job, children) {
  if (!children.length) return null;
  const columns = [
    {
      name: "Children",
      cell: (batch) => h("a", { href: `/jobs/${job.id}/children` }, plural(batch.total, "child", "children")),
    },
    { name: "Workflow", cell: (batch) => batch.workflow ?? "–" },
    { name: "Needs", cell: (batch) => NEEDS[batch.policy] },
    {
      name: "Progress",
      wide: true,
      cell: (batch) => progress(batch.ended, batch.total, { bad: batch.failed, label: "Children that have ended" }),
    },
    { name: "Ended", number: true, cell: (batch) => `${count(batch.ended)}/${count(batch.total)}` },
    { name: "Failed", cell: failed },
  ];
  const rows = table({ label: "Children", columns, rows: children, key: (batch) => batch.batch });
  return h("div", { "data-key": "children" }, section("Children", rows));
}

const NEEDS = { best_effort: "all ends", all: "all to succeed", any: "one to succeed" };

function failed(batch) {
  if (!batch.failed) return h("span", { class: "zero" }, "0");
  return h(
    "span",
    null,
    h("span", { class: "bad" }, count(batch.failed)),
    batch.first_failed.map((id) => [" ", jobLink(id)]),
    batch.failed > batch.first_failed.length && " …",
  );
}

/** The events that it was told of, and a button to tell it of one. */
export function eventsOf({ job, waiting, events }, context, ended) {
  const mayTell = context.mayAct && !ended && (waiting?.event || events.length);
  if (!events.length && !mayTell) return null;
  return h(
    "div",
    { "data-key": "events" },
    section(
      "Events",
      mayTell && h("p", { class: "tell" }, button("Tell the job of an event…", () => tell(job, waiting, context), "primary")),
      table({
        label: "Events",
        columns: EVENTS,
        rows: events,
        key: (one) => `${one.at} ${one.name}`,
        empty: "It was told of none yet.",
      }),
    ),
  );
}

const EVENTS = [
  { name: "Event", cell: (one) => one.name },
  { name: "Told", cell: (one) => when(one.at) },
  {
    name: "State",
    cell: (one) => (one.taken_at ? pill("taken", "succeeded") : pill("kept", "pending")),
  },
  { name: "Body", wide: true, cell: (one) => cut(one.preview, 160) },
];

export function tell(job, waiting, { refresh }) {
  const name = h("input", { name: "event", maxlength: 200, required: true, value: waiting?.event ?? "" });
  const body = h("textarea", { name: "body", rows: 4, spellcheck: "false", value: "null" });
  ask({
    title: `Tell job ${short(job.id)} of an event?`,
    text: "A job that waits for it continues; otherwise it is kept until the job waits for it.",
    yes: "Tell the job",
    fields: [
      field("Event", name, "The name that the phase waits for."),
      field("Body", body, "JSON, at most 64 KiB; it becomes the result of the phase that waits."),
    ],
    act: async ({ event, body }) => {
      const { answer } = await post(`/v1/jobs/${job.id}/events/${encodeURIComponent(event)}`, read(body));
      await refresh();
      return answer === "delivered" ? "The job continues." : "The event is kept until the job waits for it.";
    },
  });
}

function read(text) {
  try {
    return JSON.parse(text.trim() || "null");
  } catch (error) {
    throw new Error(`The body is not valid JSON: ${error.message}`);
  }
}
