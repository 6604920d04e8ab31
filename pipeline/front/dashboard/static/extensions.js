// Pages that the application adds to the dashboard: docs/howto/extend.md says how.

import { get } from "/static/api.js";
import { warn } from "/static/notices.js";
import { route } from "/static/router.js";

/** What the navigation lists after the dashboard's own pages: [address, title]. */
export const entries = [];
let loading = null;

/** Loads them once. If the server does not answer, the next call asks again. */
export function extensions() {
  loading ??= add().catch((problem) => {
    loading = null;
    throw problem;
  });
  return loading;
}

/** One that cannot be loaded is left out, and the reader is told; the rest of the dashboard works. */
async function add() {
  const views = await get("/extensions");
  const modules = await Promise.allSettled(views.map(({ module }) => import(module)));
  views.forEach(({ path, title }, i) => {
    const { value, reason } = modules[i];
    if (!value?.default) {
      warn(`The page ${title ?? path} cannot be shown: ${reason?.message ?? "its module has no default export"}`);
      return;
    }
    route(path, value.default);
    if (title) entries.push([path, title]);
  });
}
