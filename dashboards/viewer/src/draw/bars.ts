/** Draws bar gauges: a table of names and values, with a bar between them. */

import { h, scroller } from '../dom';
import { portion, valueColour, written } from '../fields';
import { calcs, reduced } from '../series';
import type { Draw } from './canvas';

export const bars: Draw = (body, found, canvas) => {
  const rows = found.series.map((series) => ({ series, value: reduced(calcs(canvas.panel), series.values) }));
  const known = rows.flatMap(({ value }) => (value === null ? [] : [value]));
  const [least, most] = [Math.min(0, ...known), Math.max(...known)];
  const drawn = rows.map(({ series, value }) => {
    const share = portion(value, series.look, least, most);
    const told = written(value, series.look);
    const colour = valueColour(value, series.look, share, canvas.theme);
    const bar = h('div', { class: 'bar', 'aria-hidden': 'true' }, h('div', { styles: { width: `${share * 100}%`, background: colour } }));
    return h('tr', {}, h('th', { scope: 'row' }, h('span', {}, series.name)), h('td', { class: 'track' }, bar), h('td', { class: 'figure' }, told.text));
  });
  body.append(scroller(`${canvas.panel.title ?? 'Bars'}, bars`, h('table', { class: 'bars' }, h('tbody', {}, ...drawn))));
};
