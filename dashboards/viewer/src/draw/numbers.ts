/** Draws stat panels: one number, or several with their names. */

import { faded, legible } from '../colours';
import { h, svg } from '../dom';
import { portion, valueColour, written } from '../fields';
import { calcs, reduced, type Series } from '../series';
import type { Canvas, Draw } from './canvas';

interface Options {
  colorMode?: string;
  graphMode?: string;
  textMode?: string;
}

export const numbers: Draw = (body, found, canvas) => {
  const options = (canvas.panel.options ?? {}) as Options;
  const named = options.textMode === 'value_and_name' || (options.textMode !== 'value' && found.series.length > 1);
  const items = found.series.map((one) => item(one, options, named, canvas));
  body.append(h('ul', { class: 'numbers', styles: { '--count': items.length } }, ...items));
};

function item(series: Series, options: Options, named: boolean, canvas: Canvas): HTMLElement {
  const value = reduced(calcs(canvas.panel), series.values);
  const told = written(value, series.look);
  const known = series.values.filter((one): one is number => one !== null);
  const share = portion(value, series.look, Math.min(...known), Math.max(...known));
  const mapped = told.colour ? { ...series.look, colouring: { mode: 'fixed', fixedColor: told.colour } } : series.look;
  const colour = valueColour(value, mapped, share, canvas.theme);
  const filled = options.colorMode?.startsWith('background') && value !== null;
  const ink = filled ? legible(colour) : options.colorMode === 'none' ? canvas.theme.text : colour;
  return h(
    'li',
    { class: told.text.length > 12 ? 'number wordy' : 'number', styles: filled ? { background: colour } : {} },
    options.graphMode === 'area' && known.length > 1 ? sparkline(series, filled ? ink : colour) : null,
    named ? h('span', { class: 'name', styles: filled ? { color: ink } : {} }, series.name) : null,
    h('span', { class: 'value', styles: { color: ink, '--length': told.text.length } }, told.text),
  );
}

function sparkline({ values }: Series, colour: string): SVGElement {
  const known = values.filter((one): one is number => one !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const points = values.flatMap((value, at) => (value === null ? [] : [[(at / Math.max(1, values.length - 1)) * 100, 38 - ((value - low) / (high - low || 1)) * 34] as const]));
  const line = points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(' ');
  return svg(
    'svg',
    { class: 'spark', viewBox: '0 0 100 40', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('polygon', { points: `${points[0]?.[0] ?? 0},40 ${line} ${points.at(-1)?.[0] ?? 100},40`, fill: faded(colour, 0.16) }),
    svg('polyline', { points: line, fill: 'none', stroke: colour, 'stroke-width': 1.5, 'vector-effect': 'non-scaling-stroke' }),
  );
}
