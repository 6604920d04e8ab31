// How far something is that is done with many jobs, and pausing and stopping it.

import { post } from "/static/api.js";
import { attempt } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { CAP, capped, count, duration, rate, seconds } from "/static/format.js";
import { button, pill, progress, when } from "/static/parts.js";

const SAID = { pause: "Paused.", resume: "It goes on.", stop: "Stopped; what was done stays." };

export function bulkCard(one, context) {
  const total = Math.max(one.total, one.done);
  return h(
    "article",
    { class: "card bulk", "data-key": `bulk ${one.id}`, "aria-label": `${one.action} ${one.id}` },
    h(
      "header",
      null,
      h("h2", null, `${one.action} ${isCounted(one) ? count(one.total) : `${count(CAP)} or more`} jobs`, one.per_second && ` at ${rate(one.per_second)} a second`),
      h("p", { class: "soft" }, Object.values(one.filter).join(" › ")),
      h("p", { class: "jobs" }, pill(one.state, KINDS[one.state])),
    ),
    // How far it is can only be said of what was counted.
    isCounted(one) &&
      progress(one.state === "done" ? total : one.done, total, { label: `Done of ${one.action} ${one.id}` }),
    one.held > 0 &&
      h("p", { class: "soft" }, `${capped(one.held)} ${one.held === 1 ? "is" : "are"} held by somebody else's transaction, and tried again.`),
    h("p", null, `${count(one.done)} done`, left(one), ` by ${one.who}, begun `, when(one.at), one.reason && `: ${one.reason}`),
    context.mayAct &&
      !one.ended_at &&
      h(
        "div",
        { class: "buttons" },
        one.state === "running"
          ? button("Pause", () => steer(one, "pause", context))
          : button("Resume", () => steer(one, "resume", context), "primary"),
        button("Stop", () => steer(one, "stop", context), "danger quiet"),
      ),
  );
}

const KINDS = { running: "running", paused: "paused", stopped: "stopped", done: "succeeded" };

/** The server counts up to ten thousand, unless somebody has counted before. */
const isCounted = ({ total }) => total !== CAP;

function left(one) {
  const { state, total, done, held, at, per_second: perSecond } = one;
  if (state !== "running" || !isCounted(one) || !done || done + held >= total) return "";
  return `, about ${duration(Math.ceil((total - done) / (perSecond ?? done / seconds(at))))} left`;
}

const steer = (one, what, { refresh }) =>
  attempt(async () => {
    await post(`/v1/bulk/${one.id}/${what}`);
    await refresh();
    return SAID[what];
  });
