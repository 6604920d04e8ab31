// What can be done about dead letters, each after a question.

import { post } from "/static/api.js";
import { sendCanary } from "/static/canary.js";
import { ask, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { CAP, capped, plural } from "/static/format.js";

const AT_ONCE = 1000;
const jobsOf = (group) => (group.jobs >= CAP ? `${capped(group.jobs)} jobs` : plural(group.jobs, "job"));

export function replayOne(group, sample, { refresh }) {
  ask({
    title: "Replay one job as a canary?",
    text: `Job ${sample.id} starts again with fresh budgets; the others stay where they are until you see how it goes.`,
    yes: "Replay one",
    act: async () => {
      await sendCanary(group, sample.id);
      await refresh();
      return "The canary is on its way.";
    },
  });
}

export function replayRest(group, { refresh }) {
  const fields = [
    field(
      "Jobs per second",
      h("input", {
        name: "per_second",
        type: "number",
        min: "0.01",
        max: "10000",
        step: "any",
        value: "10",
        required: true,
      }),
      "They start one after another at this rate, oldest first. It can be paused and stopped by everybody.",
    ),
    field("Reason", h("input", { name: "reason", maxlength: 1000 }), "Kept in the audit; may be left empty."),
  ];
  ask({
    title: `Replay ${jobsOf(group)}?`,
    text: `${group.cause} in ${group.workflow} › ${group.phase}`,
    fields,
    yes: "Replay them",
    act: async ({ per_second, reason }) => {
      const wish = { action: "replay", group: group.group, per_second: Number(per_second), reason: reason.trim() || null };
      const { total } = await post("/v1/bulk", wish);
      await refresh();
      return `Replaying ${total >= CAP ? `${capped(total)} jobs` : plural(total, "job")} at ${per_second} a second.`;
    },
  });
}

export function discard(group, { refresh }) {
  ask({
    title: `Discard ${jobsOf(group)}?`,
    text: "All of the group leave the dead letters, become cancelled and keep your reason.",
    danger: true,
    fields: [field("Reason", h("input", { name: "reason", maxlength: 1000, required: true }))],
    yes: "Discard them",
    act: async ({ reason }) => {
      const said = group.jobs > AT_ONCE ? await inBackground(group, reason) : await atOnce(group, reason);
      await refresh();
      return said;
    },
  });
}

async function inBackground(group, reason) {
  await post("/v1/bulk", { action: "discard", group: group.group, reason });
  return `Discarding ${jobsOf(group)}: it is under way, and can be paused and stopped by everybody.`;
}

async function atOnce(group, reason) {
  const { jobs } = await post("/v1/dead/discard", { group: group.group, limit: AT_ONCE, reason });
  return `Discarded ${plural(jobs, "job")}.`;
}
