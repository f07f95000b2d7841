/** Owns how a number is written in its unit. Unknown is never written as a number. */

type Write = (value: number, decimals: number | undefined) => string;

/** What rounds up to the next size is written in it: 1M, not 1000K. */
const NEARLY = 0.9995;
const SHORT: [number, string][] = [[1e15, 'P'], [1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'K']];
const SI: [number, string][] = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const BINARY: [number, string][] = [[2 ** 50, 'Pi'], [2 ** 40, 'Ti'], [2 ** 30, 'Gi'], [2 ** 20, 'Mi'], [2 ** 10, 'Ki']];
const TIMES: [number, string][] = [[31536000, 'years'], [604800, 'weeks'], [86400, 'days'], [3600, 'hours'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs']];
const CURRENCIES: Record<string, string> = { currencyUSD: '$', currencyEUR: '€', currencyGBP: '£', currencyJPY: '¥' };
const RATES: Record<string, string> = { ops: 'ops/s', reqps: 'req/s', cps: 'c/s', rps: 'rd/s', wps: 'wr/s', mps: 'msg/s', eps: 'evt/s', iops: 'io/s' };

const WRITTEN: Record<string, Write> = {
  none: plain,
  short: (value, decimals) => scaled(value, decimals, SHORT, '', ''),
  sishort: (value, decimals) => scaled(value, decimals, SI, '', ''),
  locale: (value, decimals) => plain(value, decimals).replace(/\B(?=(\d{3})+(?!\d))/g, ','),
  percent: (value, decimals) => `${plain(value, decimals)}%`,
  percentunit: (value, decimals) => `${plain(value * 100, decimals)}%`,
  bytes: (value, decimals) => scaled(value, decimals, BINARY, ' ', 'B'),
  decbytes: (value, decimals) => scaled(value, decimals, SI, ' ', 'B'),
  Bps: (value, decimals) => scaled(value, decimals, SI, ' ', 'B/s'),
  binBps: (value, decimals) => scaled(value, decimals, BINARY, ' ', 'B/s'),
  s: lasting,
  ms: (value, decimals) => lasting(value / 1000, decimals),
  µs: (value, decimals) => lasting(value / 1e6, decimals),
  m: (value, decimals) => lasting(value * 60, decimals),
  h: (value, decimals) => lasting(value * 3600, decimals),
  d: (value, decimals) => lasting(value * 86400, decimals),
  bool: (value) => (value ? 'True' : 'False'),
  bool_yes_no: (value) => (value ? 'Yes' : 'No'),
  bool_on_off: (value) => (value ? 'On' : 'Off'),
};

export function amount(value: number, unit = 'short', decimals?: number): string {
  const write = WRITTEN[unit];
  if (write) return write(value, decimals);
  const sign = CURRENCIES[unit];
  if (sign) return `${value < 0 ? '-' : ''}${sign}${scaled(Math.abs(value), decimals ?? cents(value), SHORT, '', '')}`;
  if (RATES[unit]) return scaled(value, decimals, SHORT, ' ', RATES[unit]);
  return named(value, unit, decimals);
}

/** `suffix:tok/s`, `prefix:×`, `si:tok`, or any word after the number. */
function named(value: number, unit: string, decimals: number | undefined): string {
  const [kind, rest] = [unit.slice(0, unit.indexOf(':')), unit.slice(unit.indexOf(':') + 1)];
  if (kind === 'prefix') return `${rest}${scaled(value, decimals, SHORT, '', '')}`;
  if (kind === 'si') return scaled(value, decimals, SI, ' ', rest);
  return `${scaled(value, decimals, SHORT, '', '')} ${kind === 'suffix' ? rest : unit}`;
}

function scaled(value: number, decimals: number | undefined, sizes: [number, string][], space: string, unit: string): string {
  const [size, letter] = sizes.find(([limit]) => Math.abs(value) >= limit * NEARLY) ?? [1, ''];
  const ending = letter || unit ? `${space}${letter}${unit}` : '';
  return `${plain(value / size, decimals)}${ending}`;
}

function lasting(value: number, decimals: number | undefined): string {
  const [size, word] = TIMES.find(([limit]) => Math.abs(value) >= limit * NEARLY) ?? [1, 's'];
  return `${plain(value / size, decimals)} ${word}`;
}

/** Three digits that say something, unless a board says how many decimals. */
function plain(value: number, decimals: number | undefined): string {
  if (decimals !== undefined) return value.toFixed(decimals).replace(/^-(0(\.0+)?)$/, '$1');
  if (value === 0 || Number.isInteger(value)) return String(value);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return String(Number(value.toFixed(Math.min(digits, 9))));
}

function cents(value: number): number | undefined {
  return Math.abs(value) >= 0.01 && Math.abs(value) < 1000 ? 2 : undefined;
}
