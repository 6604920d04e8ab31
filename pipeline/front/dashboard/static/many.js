// What is done with all jobs that match a filter: counted first, then done part by part, with a way to stop.

import { get, post } from "/static/api.js";
import { ask, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { count, plural } from "/static/format.js";
import { go } from "/static/router.js";

/** More than these are done in the background. */
const BACKGROUND = 5000;
/** The names of a filter that count and change understand alike. */
const NAMES = ["workflow", "phase", "status", "tag", "since", "until", "id", "error"];

export const filterOf = (query) =>
  Object.fromEntries(NAMES.filter((name) => query[name]).map((name) => [name, query[name]]));

/** What may be done with jobs of this state; without one, with those that have not ended, or have failed. */
export const canCancel = (status) => !["succeeded", "failed", "cancelled"].includes(status ?? "");
export const canReplay = (status) => ["failed", "cancelled"].includes(status ?? "failed");

export const cancelAll = (query, context) =>
  begin(query, context, {
    status: "unfinished",
    verb: "Cancel",
    done: "cancelled",
    path: "/v1/jobs/cancel",
    text: "Nothing of running attempts is kept. Cancelled jobs can be replayed.",
    danger: true,
    fields: [
      field(
        "Reason",
        h("input", { name: "reason", maxlength: 1000, value: "cancelled in the dashboard", required: true }),
        "Kept with the jobs.",
      ),
    ],
  });

export const replayAll = (query, context) =>
  begin(query, context, {
    status: "failed",
    verb: "Replay",
    done: "replayed",
    path: "/v1/jobs/replay",
    text: "Each starts its phase again, with fresh budgets.",
  });

async function begin(query, { refresh }, { status, verb, done, path, text, danger, fields }) {
  const where = { status, ...filterOf(query) };
  const total = await countAll(where);
  const said = Object.entries(where).map(([name, value]) => `${name} ${value}`);
  if (!total) return `No job matches: ${said.join(", ")}.`;
  ask({
    title: `${verb} ${plural(total, "job")}?`,
    text: `All that match: ${said.join(", ")}. ${text}`,
    yes: `${verb} them`,
    danger,
    fields,
    act: async (values, { progress, stopped }) => {
      if (total > BACKGROUND) {
        await post("/v1/bulk", { action: verb.toLowerCase(), where, total, ...values });
        go("/bulk");
        return "It is under way.";
      }
      let jobs = 0;
      let cursor;
      do {
        const part = await post(path, { where, cursor, ...values });
        jobs += part.jobs;
        cursor = part.next;
        progress(`${count(jobs)} of ${count(total)} ${done}; close this to stop`);
      } while (cursor && !stopped());
      await refresh();
      return `${plural(jobs, "job")} ${done}${cursor ? "; stopped before the end" : ""}.`;
    },
  });
}

async function countAll(where) {
  let jobs = 0;
  let cursor;
  do {
    const part = await get("/v1/jobs/count", { ...where, cursor });
    jobs += part.jobs;
    cursor = part.next;
  } while (cursor);
  return jobs;
}
