// The prices of one source that could not be read, each with its reason.

import { get } from "/static/api.js";
import { h } from "/static/dom.js";
import { count } from "/static/format.js";
import { cut, heading, select, table, when } from "/static/parts.js";
import { refine } from "/static/router.js";

export default {
  title: ({ params }) => `Unread prices of ${params.id}`,
  every: 10,
  load: ({ params, query: { reason } }) => get(`/v1/sources/${encodeURIComponent(params.id)}/unread`, { reason }),
  render({ reasons, prices }, { params, query }) {
    const all = Object.values(reasons).reduce((sum, n) => sum + n, 0);
    return [
      h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/sources" }, "Sources")),
      heading(`Unread prices of ${params.id}`, { count: `${count(all)} kept aside` }),
      h("search", { class: "filters" }, filter(reasons, query)),
      table({
        label: "Unread prices",
        columns: COLUMNS,
        rows: prices,
        key: (price) => `${price.intake_id} ${price.url} ${price.price_text}`,
        empty: "Every price of this source was read.",
      }),
    ];
  },
};

const COLUMNS = [
  { name: "Price", cell: (price) => h("b", null, cut(price.price_text, 80)) },
  {
    name: "Reason",
    cell: (price) => h("span", null, price.reason, h("span", { class: "why" }, cut(price.detail, 120))),
  },
  { name: "Offer", wide: true, cell: (price) => h("span", null, cut(price.title, 80), h("span", { class: "why" }, cut(price.url, 80))) },
  { name: "First seen", cell: (price) => when(price.first_seen_at) },
  { name: "Last seen", cell: (price) => when(price.last_seen_at) },
];

function filter(reasons, query) {
  return h(
    "label",
    null,
    h("span", { class: "hidden" }, "reason"),
    select(
      { name: "reason", onchange: (event) => refine({ reason: event.target.value }) },
      [["", "All reasons"], ...Object.entries(reasons).map(([reason, n]) => [reason, `${reason} (${count(n)})`])],
      query.reason,
    ),
  );
}
