// Starts the dashboard: who is signed in, which view the address asks for, and bringing it up to date.

import { get, onSignedOut } from "/static/api.js";
import { isHeld } from "/static/chart.js";
import { h, patch } from "/static/dom.js";
import { extensions } from "/static/extensions.js";
import { drawHeader } from "/static/header.js";
import { live, start, stop, subscribe } from "/static/live.js";
import { say } from "/static/notices.js";
import { listenToKeys } from "/static/keyboard.js";
import { current, listen, route } from "/static/router.js";
import { audit } from "/static/views/audit.js";
import { batch } from "/static/views/batch.js";
import { batches } from "/static/views/batches.js";
import { bulk } from "/static/views/bulk.js";
import { children } from "/static/views/children.js";
import { dead } from "/static/views/dead.js";
import { job } from "/static/views/job.js";
import { jobs } from "/static/views/jobs.js";
import { keys } from "/static/views/keys.js";
import { limits } from "/static/views/limits.js";
import { overview } from "/static/views/overview.js";
import { phasesView } from "/static/views/phases.js";
import { schedule, schedules } from "/static/views/schedules.js";
import { signIn } from "/static/views/sign_in.js";
import { worker, workers } from "/static/views/workers.js";
import { workflow } from "/static/views/workflow.js";
import { workflows } from "/static/views/workflows.js";

// A view: title(context), load(context) → data, render(data, context) → elements, every: seconds between loads.
for (const [pattern, view] of [
  ["/", overview],
  ["/jobs", jobs],
  ["/jobs/{id}", job],
  ["/jobs/{id}/children", children],
  ["/dead", dead],
  ["/phases", phasesView],
  ["/workers", workers],
  ["/workers/{id}", worker],
  ["/bulk", bulk],
  ["/audit", audit],
  ["/batches", batches],
  ["/batches/{id}", batch],
  ["/workflows", workflows],
  ["/workflows/{workflow}", workflow],
  ["/workflows/{workflow}/keys", keys],
  ["/schedules", schedules],
  ["/schedules/{workflow}/{schedule}", schedule],
  ["/limits", limits],
])
  route(pattern, view);

const main = document.getElementById("main");
let session = null;
let shown = null;
let drawn = null;

/** Show what the address asks for. On a new page the focus goes to its title, where a screen reader begins. */
function show(isNewPage) {
  const { view, query, params } = current();
  const past = shown;
  const context = { query, params, live, mayAct: session.role === "operator", refresh };
  shown = { name: location.pathname, view, context, data: undefined, loadedAt: 0, loading: null };
  document.title = `${view ? view.title(shown.context) : "Not found"} · Pipeline`;
  drawHeader(session, redraw);
  if (isNewPage && past) scrollTo(0, 0);
  load(shown).then(() => isNewPage && past && main.querySelector("h1")?.focus());
}

async function load(page) {
  page.loadedAt = performance.now();
  page.loading = page.view ? page.view.load(page.context) : Promise.resolve(null);
  try {
    const before = page.data;
    page.data = await page.loading;
    page.problem = null;
    if (page === shown && before) announce(page, before);
  } catch (problem) {
    page.problem = problem;
  } finally {
    page.loading = null;
    page.loadedAt = performance.now();
  }
  if (page === shown) draw();
}

function announce(page, before) {
  const said = page.view.announce?.(before, page.data);
  if (said) say(said);
}

function draw() {
  const { view, data, problem, context } = shown;
  if (!session || (data === undefined && !problem)) return;
  if (drawn !== shown.name) main.replaceChildren();
  drawn = shown.name;
  if (!view) return patch(main, missing("No such page", "The address leads nowhere in this dashboard."));
  if (problem && (data === undefined || problem.status === 404))
    return patch(main, missing(problem.title ?? "Not possible", problem.message));
  patch(
    main,
    problem && h("p", { class: "stale", role: "status", "data-key": "stale" }, `Not up to date: ${problem.message}`),
    view.render(data, context),
  );
}

const missing = (title, text) =>
  h(
    "div",
    { class: "missing" },
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "soft" }, text),
    h("a", { href: "/", class: "button" }, "Overview"),
  );

async function refresh() {
  await load(shown);
}

function redraw() {
  drawHeader(session, redraw);
  draw();
}

function tick() {
  drawHeader(session, redraw);
  if (!shown?.view || shown.loading || document.hidden || isHeld()) return;
  if (shown.problem && shown.problem.status >= 400 && shown.problem.status < 429) return;
  if (performance.now() - shown.loadedAt >= shown.view.every * 1000 - 100) load(shown);
  else draw();
}

function askToSignIn() {
  stop();
  session = null;
  shown = drawn = null;
  drawHeader(null);
  main.replaceChildren(signIn(begin));
  main.querySelector("input")?.focus();
}

async function begin(found) {
  await extensions();
  session = found;
  start();
  show(true);
}

onSignedOut(askToSignIn);
subscribe(() => session && tick());
listen((isNewPage) => session && show(isNewPage));

async function enter() {
  try {
    const [found] = await Promise.all([get("/v1/session"), extensions()]);
    await begin(found);
  } catch (problem) {
    if (problem.status === 401) return askToSignIn();
    main.replaceChildren(missing(problem.title, problem.message));
    setTimeout(enter, 5000);
  }
}

listenToKeys();
enter();
