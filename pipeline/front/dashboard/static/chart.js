// Line charts in SVG. The drawing stretches with its box; words and numbers are HTML, so that they do not.

import { h, s } from "/static/dom.js";
import { hour, weekday } from "/static/format.js";

const WIDE = 600;
const HIGH = 120;
let held = false;

/** Whether somebody reads a value just now: the page waits with the next drawing. */
export const isHeld = () => held;

/** `series`: {name, kind, values}; `times` in ms. `show(value)` writes a value for people; `top` is the least height. */
export function chart({ title, note, times, series, show, top = 1 }) {
  const highest = niceTop(Math.max(top, ...series.flatMap((one) => one.values)));
  const x = (i) => (times.length > 1 ? (i / (times.length - 1)) * WIDE : 0);
  const y = (value) => HIGH - (value / highest) * HIGH;
  const last = times.length - 1;
  const write = times[last] - times[0] > 20 * 3_600_000 ? weekday : hour;
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, h("span", { class: "title" }, title), readout()),
    h(
      "div",
      { class: "plot", onpointermove: point, onpointerleave: leave },
      h("span", { class: "highest", "aria-hidden": "true" }, show(highest)),
      s(
        "svg",
        { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": summary() },
        [0.25, 0.5, 0.75].map((part) =>
          s("line", { class: "grid", x1: 0, x2: WIDE, y1: HIGH * part, y2: HIGH * part }),
        ),
        series.map((one, n) => [
          n === 0 && s("path", { class: `area ${one.kind}`, d: `M0,${HIGH}${steps(one.values)}L${WIDE},${HIGH}Z` }),
          s("path", { class: `line ${one.kind}`, d: `M${steps(one.values).slice(1)}` }),
        ]),
        s("line", { class: "mark off", y1: 0, y2: HIGH, x1: 0, x2: 0 }),
      ),
    ),
    h(
      "div",
      { class: "times", "aria-hidden": "true" },
      [0, 1, 2, 3].map((n) => h("span", null, n === 3 ? "now" : write(times[Math.round((last * n) / 3)]))),
    ),
    note && h("p", { class: "hint" }, note),
  );

  function steps(values) {
    return values.map((value, i) => `L${x(i).toFixed(1)},${y(value).toFixed(1)}`).join("");
  }

  function readout(i = last) {
    return h(
      "span",
      { class: "readout" },
      h("span", { class: "at" }, i === last ? "" : write(times[i])),
      series.map((one) =>
        h(
          "span",
          { class: one.kind },
          h("span", { class: "key", "aria-hidden": "true" }),
          h("b", null, show(one.values[i])),
          ` ${one.name}`,
        ),
      ),
    );
  }

  function summary() {
    return series
      .map((one) => {
        const most = Math.max(...one.values);
        return `${title}, ${one.name}: now ${show(one.values[last])}, highest ${show(most)} at ${write(times[one.values.indexOf(most)])}`;
      })
      .join("; ");
  }

  function point(event) {
    const box = event.currentTarget.getBoundingClientRect();
    mark(Math.round(Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * last), event.currentTarget);
  }

  function leave(event) {
    mark(null, event.currentTarget);
  }

  function mark(i, plot) {
    held = i !== null;
    const place = plot.closest(".chart");
    const line = place.querySelector(".mark");
    line.classList.toggle("off", i === null);
    for (const end of ["x1", "x2"]) line.setAttribute(end, x(i ?? 0));
    place.querySelector(".readout").replaceWith(readout(i ?? last));
  }
}

function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

/** Small bars, for counts by the hour. */
export function bars(values, label) {
  const most = Math.max(1, ...values);
  return s(
    "svg",
    {
      class: "bars",
      viewBox: `0 0 ${values.length * 4} 24`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    values.map((value, i) =>
      s("rect", {
        x: i * 4 + 0.5,
        width: 3,
        y: 24 - Math.max(value ? 2 : 0.6, (value / most) * 24),
        height: Math.max(value ? 2 : 0.6, (value / most) * 24),
        class: value ? "some" : "none",
      }),
    ),
  );
}
