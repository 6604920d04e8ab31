// What the rollups say, a value for each step of time, over all phases.

import { now } from "/static/format.js";

const MINUTE = 60_000;

/** Times and sums. A job that ended is one that succeeded in its workflow's last phase, or failed in any. */
export function series(rows, hours, stats) {
  const step = hours > 6 ? 15 * MINUTE : MINUTE;
  const lastPhases = new Set(new Map(stats.phases.map((phase) => [phase.workflow, phase.queue])).values());
  const end = Math.floor(now() / step) * step;
  const length = Math.round((hours * 60 * MINUTE) / step) - 1;
  const times = Array.from({ length: length + 1 }, (_, i) => end - (length - i) * step);
  const sums = times.map(() => ({ waiting: 0, running: 0, succeeded: 0, errors: 0, ended: 0, failed: 0 }));
  for (const row of rows) {
    const sum = sums[Math.round((Date.parse(row.at) - times[0]) / step)];
    if (sum) add(sum, row, lastPhases.has(row.queue));
  }
  const perMinute = step / MINUTE;
  standNow(sums[length], stats, perMinute * 60, lastPhases);
  const pick = (value) => sums.map(value);
  return {
    times,
    step,
    waiting: pick((sum) => sum.waiting),
    running: pick((sum) => sum.running),
    throughput: pick((sum) => sum.succeeded / perMinute),
    errors: pick((sum) => sum.errors / perMinute),
    errorRate: pick((sum) => share(sum.errors, sum.errors + sum.succeeded)),
    dead: pick((sum) => share(sum.failed, sum.failed + sum.ended)),
  };
}

const share = (part, whole) => (whole ? part / whole : 0);

function add(sum, row, isLast) {
  sum.waiting += row.waiting + row.queued;
  sum.running += row.running;
  sum.succeeded += row.succeeded;
  sum.errors += row.retried + row.crashed + row.failed;
  sum.failed += row.failed;
  if (isLast) sum.ended += row.succeeded;
}

/** The step that is not over yet: what stands is known, what ended is told by the last minute's rates. */
function standNow(sum, stats, seconds, lastPhases) {
  Object.assign(sum, { waiting: 0, running: 0, succeeded: 0, errors: 0, ended: 0, failed: 0 });
  for (const phase of stats.phases) {
    sum.waiting += waitingOf(phase) + phase.queued;
    sum.running += phase.running;
    sum.succeeded += phase.succeeded_per_second * seconds;
    sum.errors += (phase.ended_per_second - phase.succeeded_per_second) * seconds;
    sum.failed += phase.failed_per_second * seconds;
    if (lastPhases.has(phase.queue)) sum.ended += phase.succeeded_per_second * seconds;
  }
}

export const waitingOf = (phase) => Object.values(phase.waiting).reduce((sum, n) => sum + n, 0);
