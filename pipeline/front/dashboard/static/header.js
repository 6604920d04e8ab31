// The bar on top: where to go, whether the page is live, who is signed in.

import { remove } from "/static/api.js";
import { button } from "/static/parts.js";
import { h, patch, s } from "/static/dom.js";
import { entries } from "/static/extensions.js";
import { capped, inUtc, tellInUtc } from "/static/format.js";
import { showKeys } from "/static/keyboard.js";
import { hands, live } from "/static/live.js";
import { openSubmit } from "/static/views/submit.js";

const VIEWS = [
  ["/", "Overview"],
  ["/jobs", "Jobs"],
  ["/dead", "Dead letters"],
  ["/workflows", "Workflows"],
  ["/phases", "Phases"],
  ["/schedules", "Schedules"],
  ["/limits", "Limits"],
  ["/workers", "Workers"],
  ["/batches", "Batches"],
  ["/bulk", "Bulk"],
  ["/audit", "Audit"],
];

let shown = null;

/** `redraw` brings the page up to date after times are told in another zone. */
export function drawHeader(session, redraw) {
  const here = location.pathname;
  const isHere = (href) => (href === "/" ? here === "/" : here === href || here.startsWith(`${href}/`));
  patch(
    document.getElementById("header"),
    h(
      "div",
      { class: "bar" },
      h("a", { href: "/", class: "brand", "aria-label": "Pipeline, overview" }, mark(), h("span", null, "Pipeline")),
      session &&
        h(
          "nav",
          { "aria-label": "Main" },
          h(
            "ul",
            null,
            [...VIEWS, ...entries].map(([href, name]) =>
              h(
                "li",
                null,
                h("a", { href, "aria-current": isHere(href) ? "page" : null }, name, href === "/dead" && dead()),
              ),
            ),
          ),
        ),
      session &&
        h(
          "div",
          { class: "tools" },
          state(),
          zone(redraw),
          h("button", { type: "button", class: "small quiet", "aria-label": "Keys", title: "Keys", onclick: showKeys }, "?"),
          session.role === "operator"
            ? button("Submit job", openSubmit, "primary small")
            : h("span", { class: "role" }, "read only"),
          !session.open && button("Sign out", signOut, "small"),
        ),
    ),
    session && nobody(),
  );
  // On a phone the bar scrolls sideways.
  if (here !== shown)
    document.querySelector(".bar nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  shown = here;
}

function dead() {
  const failed = live.stats?.phases.reduce((sum, phase) => sum + phase.failed, 0);
  return failed ? h("span", { class: "badge" }, capped(failed)) : null;
}

/** Nothing on the page says as much as this. */
function nobody() {
  if (!live.stats || hands(live.stats) > 0) return null;
  return h(
    "p",
    { class: "banner", role: "alert", "data-key": "nobody" },
    live.stats.workers.draining
      ? "All workers are draining: jobs are accepted and wait. Let one take jobs again, or start another: "
      : "No worker is alive: jobs are accepted and wait. Start one: ",
    h("code", null, "dramatiq pipeline.actors --processes 4"),
  );
}

function zone(redraw) {
  const utc = inUtc();
  const change = () => {
    tellInUtc(!utc);
    redraw();
  };
  return h(
    "button",
    { type: "button", class: "small quiet", "aria-pressed": String(utc), title: "Times in UTC, or by your clock", onclick: change },
    utc ? "UTC" : "Local",
    h("span", { class: "hidden" }, " times"),
  );
}

function state() {
  const fine = live.state === "live";
  return h(
    "span",
    {
      class: `stream ${fine ? "fine" : "poor"}`,
      title: fine ? "The page follows the server" : "The page tries again by itself",
    },
    h("span", { class: "dot", "aria-hidden": "true" }),
    live.state,
  );
}

function mark() {
  return s(
    "svg",
    { viewBox: "0 0 20 20", width: "20", height: "20", "aria-hidden": "true", class: "mark" },
    s("path", { d: "M2.5 5h7M2.5 10h11M2.5 15h7" }),
    [
      [14, 5],
      [17.6, 10],
      [14, 15],
    ].map(([cx, cy]) => s("circle", { cx, cy, r: 1.9 })),
  );
}

async function signOut() {
  await remove("/v1/session").catch(() => {});
  location.assign("/");
}
