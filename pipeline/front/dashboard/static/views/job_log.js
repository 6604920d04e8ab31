// Why an attempt failed: with the job's newest at once, with the others on demand.

import { get } from "/static/api.js";
import { attempt } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { button, cut, when } from "/static/parts.js";
import { words } from "/static/waits.js";

/** Why an attempt failed: its traceback, and what its phase logged last. */
export function log(one) {
  return h(
    "div",
    { class: "log", "data-key": `log ${one.fence}` },
    h("h3", null, `${one.phase}, try ${one.attempt}: ${one.outcome} `, when(one.finished_at)),
    one.traceback && h("pre", { class: "text whole", tabindex: "0", "aria-label": "Traceback" }, one.traceback),
    one.lines && h("h3", null, "Last lines"),
    one.lines && h("pre", { class: "text whole", tabindex: "0", "aria-label": "Last lines" }, one.lines),
  );
}

/** Logs that were asked for, by job and fence. */
const opened = new Map();

async function open(job, one, { refresh }) {
  const key = `${job.id} ${one.fence}`;
  if (opened.has(key)) opened.delete(key);
  else opened.set(key, await get(`/v1/jobs/${job.id}/attempts/${one.fence}`));
  await refresh();
}

export function errorOf(job, one, context) {
  const shown = opened.get(`${job.id} ${one.fence}`);
  return [
    one.error ? cut(one.error, 160) : waited(one),
    one.log && button(shown ? "Hide log" : "Show log", () => attempt(() => open(job, one, context)), "tiny"),
    shown && log(shown),
  ];
}

const waited = ({ wait_reason: reason }) => reason && h("span", { class: "soft" }, `after ${words(reason)}`);
