// Numbers and times for people.

const number = new Intl.NumberFormat("en");
export const CAP = 10_000;
let skew = 0;

/** The server's clock is the one that counts: ages are told by it. */
export function setClock(iso) {
  skew = Date.parse(iso) - Date.now();
}

export const now = () => Date.now() + skew;
export const count = (value) => number.format(value);
/** Counts stop at 10,000, which then means "at least". */
export const capped = (value) => (value >= CAP ? `${count(CAP)}+` : count(value));
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

export function percent(share) {
  if (!share) return "0 %";
  // All of it is said of all of it alone.
  if (share >= 0.995 && share < 1) return ">99 %";
  return share < 0.001 ? "<0.1 %" : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export function rate(perSecond) {
  if (!perSecond) return "0";
  return perSecond >= 100 ? count(Math.round(perSecond)) : perSecond.toFixed(perSecond < 1 ? 2 : 1);
}

/** Two units at most: 1 h 12 min, 3.4 s, 25 ms. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0) return "0 s";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const steps = [
    [86400, "d", 3600, "h"],
    [3600, "h", 60, "min"],
    [60, "min", 1, "s"],
  ];
  const [size, name, rest, restName] = steps.find(([size]) => seconds >= size) ?? steps[2];
  const whole = Math.floor(seconds / size);
  const part = Math.floor((seconds - whole * size) / rest);
  return part ? `${whole} ${name} ${part} ${restName}` : `${whole} ${name}`;
}

/** One unit, whole: it changes seldom. */
export function about(seconds) {
  const [size, name] = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ].find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${name}`;
}

/** "3 min ago", "in 20 s". */
export function ago(iso) {
  const seconds = (now() - Date.parse(iso)) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${about(seconds)} ago` : `in ${about(-seconds)}`;
}

/** Of memory. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  return value >= 2 ** 30 ? `${(value / 2 ** 30).toFixed(1)} GiB` : `${Math.round(value / 2 ** 20)} MiB`;
}

export const seconds = (from, until) => ((until ? Date.parse(until) : now()) - Date.parse(from)) / 1000;

const HOUR = { hour: "2-digit", minute: "2-digit" };
const DATE = { day: "numeric", month: "short", year: "numeric" };
const ZONE = "times in UTC";
let formats = null;

/** Whether times are told in UTC, as logs tell them, or by the clock on the reader's wall. */
export const inUtc = () => localStorage.getItem(ZONE) === "yes";

export function tellInUtc(wanted) {
  localStorage.setItem(ZONE, wanted ? "yes" : "no");
  formats = null;
}

function told() {
  const format = (parts) => new Intl.DateTimeFormat("en-GB", inUtc() ? { ...parts, timeZone: "UTC" } : parts);
  formats ??= {
    hour: format(HOUR),
    weekday: format({ weekday: "short", ...HOUR }),
    moment: format({ ...DATE, ...HOUR, second: "2-digit", timeZoneName: "short" }),
  };
  return formats;
}

export const hour = (time) => told().hour.format(time);
export const weekday = (time) => told().weekday.format(time);
/** With its zone: 19 Nov 2026, 22:33:12 UTC. */
export const moment = (iso) => (iso ? told().moment.format(new Date(iso)) : "–");

/** Ids begin with the time: the end tells them apart. */
export const short = (id) => `…${id.slice(-8)}`;
