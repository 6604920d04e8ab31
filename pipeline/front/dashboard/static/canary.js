// Jobs that were sent ahead to see whether their group can follow. They are followed until the reader dismisses them.

import { get, post } from "/static/api.js";

/** By group: {group, id, status}. */
export const canaries = new Map();

export async function sendCanary(group, id) {
  await post("/v1/dead/replay", { ids: [id] });
  canaries.set(group.group, { group, id, status: "pending" });
}

export function forget(group) {
  canaries.delete(group);
}

/** Looks how they are. */
export async function follow() {
  await Promise.all(
    [...canaries.values()].map(async (canary) => {
      const found = await get(`/v1/jobs/${canary.id}`).catch(() => null);
      if (found) canary.status = found.job.status;
    }),
  );
}
