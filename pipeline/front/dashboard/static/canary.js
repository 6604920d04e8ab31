// Jobs that were sent ahead to see whether their group can follow, and what is done with many jobs: rows in PostgreSQL,
// seen by everybody until somebody dismisses them.

import { get, post } from "/static/api.js";

/** What stands for a group here and in PostgreSQL alike. */
export const nameOf = ({ workflow, phase, cause }) => [workflow, phase, cause].join("\n");

/** By group: {number, group, id, status}. */
export const canaries = new Map();
/** What is under way, and what ended within a day. */
export let underWay = [];

export const sendCanary = (group, id) => post("/v1/bulk", { action: "canary", group: group.group, job: id });

export const forget = (canary) => post(`/v1/bulk/${canary.number}/stop`);

/** Looks how they are. */
export async function follow() {
  const found = await get("/v1/bulk").catch(() => null);
  if (!found) return;
  canaries.clear();
  for (const one of found.filter((each) => each.action === "canary" && !each.ended_at).reverse())
    canaries.set(nameOf(one.filter), {
      number: one.id,
      group: one.filter,
      id: one.job,
      status: one.job_status ?? "deleted",
    });
  underWay = found.filter((one) => one.action !== "canary");
}
