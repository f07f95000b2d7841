/** Owns the choice of a time: the usual ranges, and any from and to. */

import { moment, phrase, range, written, type Zone } from './clock';
import { h } from './dom';

export interface Times {
  from: string;
  to: string;
  zone: Zone;
}

const USUAL = ['now-5m', 'now-15m', 'now-30m', 'now-1h', 'now-3h', 'now-6h', 'now-12h', 'now-24h', 'now-2d', 'now-7d', 'now-30d', 'now-90d'];
const FORMS = 'now-90m, now/d, or 2026-01-31 09:00';

/** A button that says the range, with what changes it behind. */
export function picker(times: Times, changed: (times: Times) => void): HTMLElement {
  const { from, to, zone } = times;
  const summary = h('summary', { id: 'time', title: 'Time range (t)' }, phrase(from, to, zone));
  const whole = h('details', { class: 'menu' }, summary);
  const choose = (next: Partial<Times>): void => {
    whole.open = false;
    summary.focus();
    changed({ ...times, ...next });
  };
  const usual = USUAL.map((start) => {
    const current = start === from && to === 'now';
    return h('li', {}, h('button', { type: 'button', 'aria-current': current ? 'true' : null, on: { click: () => choose({ from: start, to: 'now' }) } }, phrase(start, 'now', zone)));
  });
  whole.append(h('div', { class: 'drop wide' }, h('ul', { class: 'usual' }, ...usual), exact(times, choose)));
  return whole;
}

function exact(times: Times, choose: (next: Partial<Times>) => void): HTMLElement {
  const shown = (text: string): string => (/^\d+$/.test(text) ? written(Number(text) / 1000, times.zone) : text);
  const from = h('input', { id: 'from', value: shown(times.from), autocomplete: 'off', spellcheck: 'false' });
  const to = h('input', { id: 'to', value: shown(times.to), autocomplete: 'off', spellcheck: 'false' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const zone = h('select', { id: 'zone' }, option('browser', 'Where I am', times.zone), option('utc', 'UTC', times.zone));
  const submit = (event: Event): void => {
    event.preventDefault();
    const at = zone.value === 'utc' ? 'utc' : 'browser';
    if (range(from.value, to.value, Date.now() / 1000, at) === null) wrong.textContent = `From lies before To, each as ${FORMS}.`;
    else choose({ from: stored(from.value, at), to: stored(to.value, at), zone: at });
  };
  return h(
    'form',
    { class: 'exact', on: { submit } },
    h('label', { for: 'from' }, 'From'), from,
    h('label', { for: 'to' }, 'To'), to,
    h('label', { for: 'zone' }, 'Time zone'), zone,
    wrong,
    h('button', { type: 'submit' }, 'Apply'),
  );
}

function option(value: string, text: string, chosen: string): HTMLElement {
  return h('option', { value, selected: value === chosen }, text);
}

/** A date is kept as milliseconds, as in Grafana's addresses. */
function stored(text: string, zone: Zone): string {
  const at = text.startsWith('now') ? null : moment(text, 0, zone);
  return at === null ? text.trim() : String(Math.round(at * 1000));
}
