/** Owns times: what a range says, and how a moment and a duration are written. */

export interface Range {
  /** Seconds since the epoch. */
  from: number;
  to: number;
}

export type Zone = 'utc' | 'browser';

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800, M: 2592000, y: 31536000 };
const RELATIVE = /^now(?:([-+])(\d{1,6})([smhdwMy]))?(?:\/([dwMy]))?$/;
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w|M|y)?$/;

/** Seconds since the epoch of `now-6h`, `now/d`, milliseconds or an ISO date; null for anything else. `late` takes the
 *  end of what is rounded. */
export function moment(text: string, now: number, zone: Zone, late = false): number | null {
  if (/^\d{9,14}$/.test(text)) return Number(text) / 1000;
  const found = RELATIVE.exec(text);
  if (found) {
    const [, sign, amount, unit, rounded] = found;
    const at = now + (sign === '-' ? -1 : 1) * Number(amount ?? 0) * (SECONDS[unit ?? 's'] ?? 1);
    return rounded ? atEdge(at, rounded, zone, late) : at;
  }
  const parsed = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(zoned(text, zone)) : NaN;
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

export function range(from: string, to: string, now: number, zone: Zone): Range | null {
  const start = moment(from, now, zone);
  const end = moment(to, now, zone, true);
  return start === null || end === null || end - start < 1 ? null : { from: start, to: end };
}

export function relative(text: string): boolean {
  return text.startsWith('now');
}

/** Seconds of a duration such as `30s` or `1m`; null for what is none. */
export function seconds(text: string | undefined): number | null {
  const found = DURATION.exec(text ?? '');
  if (!found) return null;
  const [, amount, unit] = found;
  return Number(amount) * (unit === 'ms' ? 0.001 : (SECONDS[unit ?? 's'] ?? 1));
}

/** So long ago, in the largest unit that it is a whole number of: `now-12h`. */
export function ago(length: number): string {
  const [unit, size] = Object.entries(SECONDS).filter(([name]) => 'smhd'.includes(name)).reverse().find(([, size]) => length % size === 0) ?? ['s', 1];
  return `now-${Math.round(length / size)}${unit}`;
}

/** `2026-01-01 09:00:00` where the reader is, or in UTC. */
export function written(at: number, zone: Zone): string {
  const date = new Date(at * 1000);
  const shifted = zone === 'utc' ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60000);
  return shifted.toISOString().slice(0, 19).replace('T', ' ');
}

/** Labels of an axis: the date at midnight, else the time, as exact as the distance of two asks for. */
export function ticks(splits: number[], increment: number, zone: Zone): string[] {
  return splits.map((at) => {
    const text = written(at, zone);
    if (increment >= 86400 || text.endsWith('00:00:00')) return text.slice(5, 10);
    return increment < 60 ? text.slice(11) : text.slice(11, 16);
  });
}

export function phrase(from: string, to: string, zone: Zone): string {
  const last = /^now-(\d+)([smhdwMy])$/.exec(from);
  const words: Record<string, string> = { s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week', M: 'month', y: 'year' };
  if (last && to === 'now') return `Last ${last[1]} ${words[last[2] ?? '']}${last[1] === '1' ? '' : 's'}`;
  const [start, end] = [from, to].map((text) => (/^\d+$/.test(text) ? written(Number(text) / 1000, zone).replace(/:00$/, '') : text)) as [string, string];
  const sameDay = /^\d{4}-/.test(start) && start.slice(0, 10) === end.slice(0, 10);
  return `${start} to ${sameDay ? end.slice(11) : end}`;
}

function zoned(text: string, zone: Zone): string {
  const full = text.trim().replace(' ', 'T');
  const timed = full.includes('T') ? full : `${full}T00:00:00`;
  return zone === 'utc' && !/(Z|[-+]\d\d:?\d\d)$/.test(timed) ? `${timed}Z` : timed;
}

function atEdge(at: number, unit: string, zone: Zone, late: boolean): number {
  const date = new Date(at * 1000);
  const utc = zone === 'utc';
  let [year, month, day] = utc
    ? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
    : [date.getFullYear(), date.getMonth(), date.getDate()];
  const weekday = (utc ? date.getUTCDay() : date.getDay()) || 7;
  if (unit === 'w') day = day - weekday + 1 + (late ? 7 : 0);
  if (unit === 'd') day += late ? 1 : 0;
  if (unit === 'M') [month, day] = [month + (late ? 1 : 0), 1];
  if (unit === 'y') [year, month, day] = [year + (late ? 1 : 0), 0, 1];
  return (utc ? Date.UTC(year, month, day) : new Date(year, month, day).getTime()) / 1000;
}
