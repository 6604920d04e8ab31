// The server's statistics as they change. While the stream is away, the page asks every five seconds instead.

import { get } from "/static/api.js";
import { setClock } from "/static/format.js";

const listeners = new Set();
let stream = null;
let timer = null;
let wanted = false;
// The server sends once a second; what is older than this is not live.
const SILENCE = 5000;
let heard = 0;
let watch = null;
export const live = { stats: null, state: "connecting" };

/** How many workers can take jobs, or some of them. */
export const hands = ({ workers }) => (workers.alive ?? 0) + (workers.not_consuming ?? 0);

export function subscribe(listener) {
  listeners.add(listener);
}

// A page in the background gives its place to others.
document.addEventListener("visibilitychange", () => wanted && (document.hidden ? close() : open()));

export function start() {
  wanted = true;
  open();
}

export function stop() {
  wanted = false;
  close();
}

function open() {
  close();
  heard = performance.now();
  watch = setInterval(look, 1000);
  stream = new EventSource("/v1/events");
  stream.addEventListener("stats", (event) => arrived(JSON.parse(event.data), "live"));
  stream.addEventListener("away", () => {
    heard = performance.now();
    change("database away");
  });
  stream.onerror = () => {
    change("reconnecting");
    // A browser tries again by itself, unless the server refused: then the page asks for a while.
    if (stream?.readyState === EventSource.CLOSED) fallBack(6);
  };
}

function close() {
  stream?.close();
  stream = null;
  clearTimeout(timer);
  clearInterval(watch);
}

/** A stream that is open and says nothing: the server hangs, or somebody between. */
function look() {
  const silent = performance.now() - heard;
  if (stream?.readyState !== EventSource.OPEN || silent < SILENCE) return;
  change(`silent for ${Math.round(silent / 1000)} s`);
  if (silent > 6 * SILENCE) open();
}

async function fallBack(times) {
  try {
    arrived(await get("/v1/stats"), "every 5 s");
  } catch (problem) {
    if (problem.status === 401) return stop();
    change("no connection");
  }
  timer = setTimeout(() => (times > 0 ? fallBack(times - 1) : open()), 5000);
}

function arrived(stats, state) {
  heard = performance.now();
  setClock(stats.at);
  live.stats = stats;
  change(state);
}

function change(state) {
  live.state = state;
  for (const listener of listeners) listener();
}
