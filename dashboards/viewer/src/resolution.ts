/** Owns how finely a range is asked for: step, `$__interval` and `$__rate_interval`, as Grafana reckons them. */

import type { Range } from './clock';

/** Prometheus refuses more points than this of one series. */
const MOST_POINTS = 11000;
/** Upper limit in seconds, and the step that a rough one below it becomes (`rangeutil` of Grafana). */
const ROUNDED: [number, number][] = [
  [0.15, 0.1], [0.35, 0.2], [0.75, 0.5], [1.5, 1], [3.5, 2], [7.5, 5], [12.5, 10], [17.5, 15], [25, 20], [45, 30],
  [90, 60], [210, 120], [450, 300], [750, 600], [1050, 900], [1500, 1200], [2700, 1800], [5400, 3600], [9000, 7200],
  [16200, 10800], [32400, 21600], [86400, 43200], [604800, 86400], [1814400, 604800], [3628800, 2592000],
];
const LONGEST = 31536000;

/** Seconds between two points of a graph that is so many pixels wide. `least`: the step asked for by the panel, or how
 *  often Prometheus scrapes. */
export function step(range: Range, pixels: number, least: number): number {
  const rough = (range.to - range.from) / Math.max(60, pixels);
  const rounded = ROUNDED.find(([limit]) => rough < limit)?.[1] ?? LONGEST;
  return Math.max(rounded, least, Math.ceil((range.to - range.from) / MOST_POINTS));
}

/** What `$__interval` and its kin stand for in a query. */
export function built(range: Range, every: number, scrape: number): Record<string, string> {
  const length = Math.round(range.to - range.from);
  return {
    __interval: lasting(every),
    __interval_ms: String(Math.round(every * 1000)),
    __rate_interval: lasting(Math.max(every + scrape, 4 * scrape)),
    __rate_interval_ms: String(Math.round(Math.max(every + scrape, 4 * scrape) * 1000)),
    __range: `${length}s`,
    __range_s: String(length),
    __range_ms: String(length * 1000),
    __from: String(Math.round(range.from * 1000)),
    __to: String(Math.round(range.to * 1000)),
  };
}

function lasting(seconds: number): string {
  return Number.isInteger(seconds) ? `${seconds}s` : `${Math.round(seconds * 1000)}ms`;
}
