/** Draws time series: lines, their legend, and what stands where the pointer or the keyboard is. */

import { written as moment } from '../clock';
import { h } from '../dom';
import { lineColour, written } from '../fields';
import { CALCS, reduced, type Series } from '../series';
import type { Canvas, Draw } from './canvas';
import { near, plot, type Line, type Plot } from './plot';

interface Legend {
  showLegend?: boolean;
  displayMode?: string;
  placement?: string;
  calcs?: string[];
}

const KEYS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
const MOST_TOLD = 12;
/** So many pixels are wide enough for a legend beside the lines. */
const WIDE = 480;
/** The colours of what is bad, the worst first: they lead a legend, of which a part may have to be scrolled to. */
const BAD = ['red', 'orange'];

export const graph: Draw = (body, found, canvas) => {
  const lines = found.series
    .filter(({ look }) => (look.custom['hideFrom'] as { viz?: boolean } | undefined)?.viz !== true)
    .map((series, at) => ({ ...series, colour: lineColour(canvas.place(series.name, at), series.look, canvas.theme) }));
  const shown = lines.filter(({ name }) => canvas.only.size === 0 || canvas.only.has(name));
  const legend = (canvas.panel.options?.['legend'] ?? {}) as Legend;
  const holder = h('div', { class: 'plot', tabindex: 0, role: 'group', 'aria-roledescription': 'graph', 'aria-label': summary(lines, legend.calcs ?? []), 'data-key': 'graph' });
  const tip = h('div', { class: 'tip', hidden: true });
  body.append(holder, legend.showLegend === false ? '' : listed(lines, legend, canvas, body.clientWidth >= WIDE));
  if (holder.clientWidth < 40 || holder.clientHeight < 40) return;
  const made = plot(holder, shown, found, canvas, (at) => followed(at, shown, tip, canvas));
  made.chart.over.append(tip);
  holder.addEventListener('keydown', (event) => walked(event, made, shown, tip, canvas));
};

function summary(lines: Line[], calcs: string[]): string {
  const figures = (line: Line): string => (calcs.length ? calcs : ['lastNotNull']).map((calc) => `${(CALCS[calc] ?? calc).toLowerCase()} ${reckoned(line, calc)}`).join(', ');
  const told = lines.slice(0, MOST_TOLD).map((line) => `${line.name}: ${figures(line)}`);
  const more = lines.length > MOST_TOLD ? ` And ${lines.length - MOST_TOLD} more.` : '';
  return `${lines.length} ${lines.length === 1 ? 'line' : 'lines'}. ${told.join('; ')}.${more} Arrow keys read values.`;
}

function reckoned(line: Series, calc: string): string {
  return written(reduced(calc, line.values), { ...line.look, mappings: [], empty: '–' }).text;
}

/** How bad a line is, by the colour that its board gives it: the worst is the lowest. */
function badness({ look }: Line): number {
  const at = BAD.findIndex((colour) => look.colouring.fixedColor?.includes(colour));
  return at < 0 ? BAD.length : at;
}

function listed(lines: Line[], legend: Legend, canvas: Canvas, wide: boolean): HTMLElement {
  const calcs = legend.displayMode === 'table' ? (legend.calcs ?? []) : [];
  const heads = [h('th', { scope: 'col' }, 'Name'), ...calcs.map((calc) => h('th', { scope: 'col', class: 'figure' }, CALCS[calc] ?? calc))];
  const rows = [...lines].sort((one, other) => badness(one) - badness(other)).map((line) => {
    const figures = calcs.map((calc) => h('td', { class: 'figure' }, reckoned(line, calc)));
    return h('tr', {}, h('th', { scope: 'row' }, named(line, canvas)), ...figures);
  });
  const table = h('table', {}, h('thead', { class: calcs.length ? '' : 'unseen' }, h('tr', {}, ...heads)), h('tbody', {}, ...rows));
  const beside = wide && legend.placement === 'right';
  return h('div', { class: `legend${calcs.length ? '' : ' list'}${beside ? ' beside' : ''}` }, table);
}

/** A click shows one line alone, and all again. */
function named(line: Line, canvas: Canvas): HTMLElement {
  const alone = canvas.only.has(line.name);
  const click = (): void => {
    canvas.only.clear();
    if (!alone) canvas.only.add(line.name);
    canvas.redraw();
  };
  const key = h('span', { class: 'key', 'aria-hidden': 'true', styles: { background: line.colour } });
  return h('button', { type: 'button', 'aria-pressed': String(alone), title: alone ? 'Show all' : 'Show alone', 'data-key': `only ${line.name}`, on: { click } }, key, line.name);
}

function followed(made: Plot, lines: Line[], tip: HTMLElement, canvas: Canvas): void {
  const chart = made.chart;
  const place = chart?.cursor.idx;
  const here = chart?.over.matches(':hover') || chart?.root.parentElement?.matches(':focus-visible');
  tip.hidden = place === null || place === undefined || !here;
  if (tip.hidden || place === null || place === undefined) return;
  const at = chart.data[0][place] ?? 0;
  tip.replaceChildren(h('strong', {}, moment(at, canvas.zone)), ...values(made, lines, place), ...happened(made, at, canvas));
  const left = chart.cursor.left ?? 0;
  const width = chart.over.clientWidth;
  tip.style.setProperty(left > width / 2 ? 'right' : 'left', `${(left > width / 2 ? width - left : left) + 12}px`);
  tip.style.removeProperty(left > width / 2 ? 'left' : 'right');
}

function values(made: Plot, lines: Line[], place: number): HTMLElement[] {
  const rows = lines.map((line, at) => ({ line, value: made.values[at]?.[place] ?? null }));
  rows.sort((one, other) => (other.value ?? -Infinity) - (one.value ?? -Infinity));
  return rows.slice(0, MOST_TOLD).map(({ line, value }) => {
    const key = h('span', { class: 'key', styles: { background: line.colour } });
    return h('div', { class: 'pair' }, key, h('span', {}, line.name), h('b', {}, written(value, { ...line.look, empty: '–' }).text));
  });
}

function happened(made: Plot, at: number, { marks }: Canvas): HTMLElement[] {
  const reach = ((made.chart.scales['x']?.max ?? 0) - (made.chart.scales['x']?.min ?? 0)) / 150;
  const told = marks.filter((mark) => mark.from - reach <= at && at <= mark.to + reach).map((mark) => `${mark.title} ${mark.text}`.trim());
  return [...new Set(told), ...near(made)].slice(0, MOST_TOLD).map((text) => h('div', { class: 'event' }, text));
}

function walked(event: KeyboardEvent, made: Plot, lines: Line[], tip: HTMLElement, canvas: Canvas): void {
  const by = KEYS[event.key];
  const times = made.chart.data[0];
  if (by === undefined || times.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const from = made.chart.cursor.idx ?? (by < 0 ? times.length : -1);
  const place = Math.min(times.length - 1, Math.max(0, from + by));
  const left = made.chart.valToPos(times[place] ?? 0, 'x');
  made.chart.setCursor({ left, top: made.chart.over.clientHeight / 2 });
  followed(made, lines, tip, canvas);
  canvas.say(Array.from(tip.children, (child) => Array.from(child.childNodes, (part) => part.textContent).join(' ').trim()).join('; '));
}
