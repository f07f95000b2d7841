/** Owns how the answers of a table's queries become rows and columns, by the transformations that boards use. */

import type { Panel, Transformation } from './board';
import { pattern } from './fields';
import type { Series } from './series';

export type Cell = string | number | null;

/** `key` is what the data calls it, `head` what the reader sees. */
export interface Column {
  key: string;
  head: string;
  ref: string | undefined;
  cells: Cell[];
}

type Change = (columns: Column[], options: Record<string, unknown>) => Column[];

export class Unknown extends Error {}

/** The columns of a table. Raises Unknown for a transformation that the page does not know. */
export function columns(panel: Panel, series: Series[]): Column[] {
  const steps = (panel.transformations ?? []).filter((one) => !one.disabled);
  return steps.reduce((made, one) => change(one)(made, one.options ?? {}), merged(panel, series));
}

function change({ id }: Transformation): Change {
  const known = CHANGES[id];
  if (!known) throw new Unknown(`This page does not know the transformation ${id}.`);
  return known;
}

/** One row for each combination of labels, one column for each query. */
function merged(panel: Panel, series: Series[]): Column[] {
  const refs = [...new Set((panel.targets ?? []).filter((one) => !one.hide).map((one) => one.refId))];
  const keys = [...new Set(series.flatMap((one) => Object.keys(one.labels).filter((key) => key !== '__name__')))];
  const rows = new Map<string, { labels: Record<string, string>; at: number | null; values: Map<string, Cell> }>();
  for (const one of series) {
    const key = JSON.stringify(keys.map((label) => one.labels[label] ?? null));
    const row = rows.get(key) ?? { labels: one.labels, at: one.times.at(-1) ?? null, values: new Map<string, Cell>() };
    row.values.set(one.ref, one.values.at(-1) ?? null);
    rows.set(key, row);
  }
  const all = [...rows.values()];
  return [
    column('Time', all.map((row) => row.at)),
    ...keys.map((key) => column(key, all.map((row) => row.labels[key] ?? ''))),
    ...refs.map((ref) => column(refs.length > 1 ? `Value #${ref}` : 'Value', all.map((row) => row.values.get(ref) ?? null), ref)),
  ];
}

function column(key: string, cells: Cell[], ref?: string): Column {
  return { key, head: key, ref, cells };
}

function organized(columns: Column[], options: Record<string, unknown>): Column[] {
  const excluded = (options['excludeByName'] ?? {}) as Record<string, boolean>;
  const order = (options['indexByName'] ?? {}) as Record<string, number>;
  const names = (options['renameByName'] ?? {}) as Record<string, string>;
  return columns
    .filter(({ head }) => !excluded[head])
    .map((one, at) => ({ one, at: order[one.head] ?? 1000 + at }))
    .sort((left, right) => left.at - right.at)
    .map(({ one }) => ({ ...one, head: names[one.head] || one.head }));
}

function ordered(columns: Column[], options: Record<string, unknown>): Column[] {
  const [first] = (options['sort'] ?? []) as { field?: string; desc?: boolean }[];
  const by = columns.find(({ head }) => head === first?.field);
  return by ? arranged(columns, by, Boolean(first?.desc)) : columns;
}

/** The same columns with the rows in the order of one of them; what is not known comes last. */
export function arranged(columns: Column[], by: Column, descending: boolean): Column[] {
  const places = by.cells.map((_, place) => place).sort((left, right) => compared(by.cells[left]!, by.cells[right]!, descending));
  return columns.map((one) => ({ ...one, cells: places.map((place) => one.cells[place] ?? null) }));
}

function compared(left: Cell, right: Cell, descending: boolean): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  const order = typeof left === 'number' && typeof right === 'number' ? left - right : String(left).localeCompare(String(right));
  return descending ? -order : order;
}

function filtered(columns: Column[], options: Record<string, unknown>): Column[] {
  const { names, pattern: text } = (options['include'] ?? {}) as { names?: string[]; pattern?: string };
  return columns.filter(({ head }) => names?.includes(head) || (text !== undefined && pattern(text).test(head)));
}

const CHANGES: Record<string, Change> = {
  merge: (columns) => columns,
  organize: organized,
  sortBy: ordered,
  filterFieldsByName: filtered,
};
