/** Draws table panels: sorted by any column, with colours and links in their cells. */

import { legible } from '../colours';
import { written as moment } from '../clock';
import { h, scroller } from '../dom';
import { look, portion, valueColour, written, type Look } from '../fields';
import { arranged, columns, type Cell, type Column } from '../frames';
import { address } from '../interpolation';
import { outward } from '../markdown';
import type { Found } from '../series';
import type { Canvas, Draw } from './canvas';

interface Sort {
  head: string;
  descending: boolean;
}

interface Shown extends Column {
  look: Look;
}

/** What the reader sorted by, from one drawing to the next. */
const SORTED = new WeakMap<object, Sort>();
/** More rows than anybody reads; the query says which ones they are. */
const MOST_ROWS = 500;

export const table: Draw = (body, found, canvas) => {
  const sort = SORTED.get(canvas.panel) ?? ofPanel(canvas);
  const made = columns(canvas.panel, found.series);
  const by = made.find(({ head }) => head === sort?.head);
  const shown = (by && sort ? arranged(made, by, sort.descending) : made).map((one) => seen(one, canvas)).filter(visible);
  const count = Math.min(MOST_ROWS, shown[0]?.cells.length ?? 0);
  const rows = Array.from({ length: count }, (_, at) => h('tr', {}, ...shown.map((one, place) => cell(one, at, place === 0, shown, canvas))));
  const heads = h('tr', {}, ...shown.map((one) => head(one, sort, canvas)));
  body.append(scroller(`${canvas.panel.title ?? 'Table'}, table`, h('table', { class: 'grid' }, h('thead', {}, heads), h('tbody', {}, ...rows))));
};

/** The values of a graph as rows, the latest first. */
export function behind(found: Found, canvas: Canvas): HTMLElement {
  const times = [...new Set(found.series.flatMap(({ times }) => times))].sort((one, other) => other - one).slice(0, MOST_ROWS);
  const at = found.series.map(({ times, values }) => new Map(times.map((time, place) => [time, values[place] ?? null])));
  const heads = h('tr', {}, h('th', { scope: 'col' }, 'Time'), ...found.series.map(({ name }) => h('th', { scope: 'col', class: 'figure' }, name)));
  const rows = times.map((time) =>
    h('tr', {}, h('th', { scope: 'row' }, moment(time, canvas.zone)), ...found.series.map(({ look }, place) => {
      return h('td', { class: 'figure' }, written(at[place]?.get(time) ?? null, { ...look, empty: '–' }).text);
    })),
  );
  const traces = found.exemplars.map((one) => `${moment(one.at, canvas.zone)}: ${trace(one.labels)}`);
  return scroller(
    `${canvas.panel.title ?? 'Graph'}, values`,
    h('table', { class: 'grid' }, h('thead', {}, heads), h('tbody', {}, ...rows)),
    traces.length ? h('h4', {}, 'Exemplars') : null,
    traces.length ? h('ul', { class: 'traces' }, ...traces.map((text) => h('li', {}, text))) : null,
  );
}

export function trace(labels: Record<string, string>): string {
  const id = labels['trace_id'] ?? labels['traceID'] ?? labels['traceId'];
  return id ? `trace ${id}` : Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(' ');
}

function ofPanel({ panel }: Canvas): Sort | undefined {
  const [first] = ((panel.options ?? {})['sortBy'] ?? []) as { displayName?: string; desc?: boolean }[];
  return first?.displayName ? { head: first.displayName, descending: Boolean(first.desc) } : undefined;
}

function seen(one: Column, { panel }: Canvas): Shown {
  const own = look(panel, [one.head, one.key], one.ref);
  return { ...one, head: own.name ?? one.head, look: own };
}

function visible({ look }: Shown): boolean {
  return look.custom['hidden'] !== true && (look.custom['hideFrom'] as { viz?: boolean } | undefined)?.viz !== true;
}

function head(one: Shown, sort: Sort | undefined, canvas: Canvas): HTMLElement {
  const active = sort?.head === one.head;
  const click = (): void => {
    SORTED.set(canvas.panel, { head: one.head, descending: active ? !sort.descending : one.ref !== undefined });
    canvas.redraw();
  };
  const order = active ? (sort.descending ? 'descending' : 'ascending') : 'none';
  const arrow = h('span', { class: 'arrow', 'aria-hidden': 'true' }, active ? (sort.descending ? '▼' : '▲') : '');
  const button = h('button', { type: 'button', 'data-key': `sort ${one.head}`, on: { click } }, one.head, arrow);
  const width = one.look.custom['minWidth'] ?? one.look.custom['width'];
  return h('th', { scope: 'col', 'aria-sort': order, class: one.ref ? 'figure' : '', styles: width ? { 'min-width': `${Number(width)}px` } : {} }, button);
}

function cell(one: Shown, at: number, first: boolean, all: Shown[], canvas: Canvas): HTMLElement {
  const value = one.cells[at] ?? null;
  const text = one.key === 'Time' && typeof value === 'number' ? moment(value, canvas.zone) : null;
  const told = typeof value === 'string' ? { text: value || '(none)', colour: undefined } : written(value, one.look);
  const content = linked(one, at, text ?? told.text, all, canvas);
  const styles = painted(value, told.colour, one, canvas);
  const kind = [one.ref ? 'figure' : '', value === null && !told.colour ? 'dim' : ''].join(' ').trim();
  return h(first ? 'th' : 'td', { class: kind, styles, ...(first ? { scope: 'row' } : {}) }, ...content);
}

function painted(value: Cell, mapped: string | undefined, one: Shown, canvas: Canvas): Record<string, string> {
  const kind = (one.look.custom['cellOptions'] as { type?: string } | undefined)?.type;
  if (!kind?.startsWith('color-') || typeof value === 'string' || (value === null && !mapped)) return {};
  const known = one.cells.filter((cell): cell is number => typeof cell === 'number');
  const share = portion(value, one.look, Math.min(...known), Math.max(...known));
  const own = mapped ? { ...one.look, colouring: { mode: 'fixed', fixedColor: mapped } } : one.look;
  const colour = valueColour(value, own, share, canvas.theme);
  return kind === 'color-text' ? { color: colour } : { background: colour, color: legible(colour) };
}

/** One link makes the value a link, several stand behind it. A link that leads nowhere from here is left out. */
function linked(one: Shown, at: number, text: string, all: Shown[], canvas: Canvas): (Node | string)[] {
  const fields = (path: string): string | undefined => field(path, one, at, all);
  const links = one.look.links.flatMap(({ title, url }) => {
    const target = canvas.lead(address(url, canvas.scope, fields));
    return target === null ? [] : [{ title, target }];
  });
  if (links.length === 0) return [text];
  if (links.length === 1 && links[0]) {
    const only = outward(links[0].target, text);
    only.title = links[0].title;
    return [only];
  }
  const items = links.map(({ title, target }) => h('li', {}, outward(target, title)));
  return [h('details', { class: 'links' }, h('summary', { 'data-key': `links ${text}` }, text), h('ul', {}, ...items))];
}

function field(path: string, one: Shown, at: number, all: Shown[]): string | undefined {
  if (/^__value\.(raw|text)$/.test(path)) return String(one.cells[at] ?? '');
  const [, bracketed, dotted] = /^__data\.fields(?:\["([^"]*)"\]|\.(\w+))$/.exec(path) ?? [];
  const wanted = bracketed ?? dotted;
  const found = all.find(({ head, key }) => wanted !== undefined && (head === wanted || key === wanted));
  return found ? String(found.cells[at] ?? '') : undefined;
}
