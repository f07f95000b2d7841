/** Owns how one series or column is to look: the panel's defaults with the overrides that match it. */

import type { Link, Mapping, Panel, Property, Thresholds } from './board';
import { ofScheme, ofSeries, ofThreshold, paint, type Colouring, type Theme } from './colours';
import { amount } from './units';

export interface Look {
  unit: string | undefined;
  decimals: number | undefined;
  min: number | undefined;
  max: number | undefined;
  empty: string;
  name: string | undefined;
  colouring: Colouring;
  thresholds: Thresholds | undefined;
  mappings: Mapping[];
  links: Link[];
  custom: Record<string, unknown>;
}

/** What is written, and the colour that a mapping gives it. */
export interface Written {
  text: string;
  colour: string | undefined;
}

interface Mapped {
  text?: string;
  color?: string;
}

/** The look of what has one of these names and came from this query. */
export function look(panel: Panel, names: (string | undefined)[], ref?: string): Look {
  const defaults = panel.fieldConfig?.defaults ?? {};
  const custom = { ...(defaults['custom'] as Record<string, unknown> | undefined) };
  const set: Record<string, unknown> = { ...defaults };
  for (const { matcher, properties } of panel.fieldConfig?.overrides ?? []) {
    if (matches(matcher.id, matcher.options, names, ref)) properties.forEach((one) => override(set, custom, one));
  }
  return {
    unit: set['unit'] as string | undefined,
    decimals: number(set['decimals']),
    min: number(set['min']),
    max: number(set['max']),
    empty: (set['noValue'] as string | undefined) ?? 'No data',
    name: set['displayName'] as string | undefined,
    colouring: (set['color'] as Colouring | undefined) ?? {},
    thresholds: set['thresholds'] as Thresholds | undefined,
    mappings: (set['mappings'] as Mapping[] | undefined) ?? [],
    links: (set['links'] as Link[] | undefined) ?? [],
    custom,
  };
}

/** A value in words: a mapping's, the number in its unit, or what stands for nothing. */
export function written(value: number | null, of: Look): Written {
  const mapped = mapping(value, of.mappings);
  if (mapped?.text !== undefined) return { text: mapped.text, colour: mapped.color };
  return { text: value === null ? of.empty : amount(value, of.unit, of.decimals), colour: mapped?.color };
}

/** Where a value lies between least and most, from 0 to 1. */
export function portion(value: number | null, of: Look, least: number, most: number): number {
  const [low, high] = [of.min ?? least, of.max ?? most];
  return value === null || high <= low ? 0 : Math.min(1, Math.max(0, (value - low) / (high - low)));
}

/** The colour of a value; `usual` says what holds where a board says nothing. */
export function valueColour(value: number | null, of: Look, share: number, theme: Theme, usual = 'thresholds'): string {
  const mode = of.colouring.mode ?? usual;
  if (mode === 'fixed') return paint(of.colouring.fixedColor ?? 'text', theme);
  if (value === null) return theme.muted;
  return ofScheme(mode, share, theme) ?? ofThreshold(value, of.thresholds, share, theme);
}

/** The colour of a line. */
export function lineColour(place: number, of: Look, theme: Theme): string {
  return of.colouring.mode === 'fixed' ? paint(of.colouring.fixedColor ?? 'text', theme) : ofSeries(place, theme);
}

function matches(kind: string, options: unknown, names: (string | undefined)[], ref?: string): boolean {
  if (kind === 'byName') return names.includes(String(options));
  if (kind === 'byFrameRefID') return ref === options;
  if (kind === 'byRegexp') return names.some((name) => name !== undefined && pattern(String(options)).test(name));
  return false;
}

export function pattern(text: string): RegExp {
  const [, body, flags] = /^\/(.*)\/([a-z]*)$/s.exec(text) ?? [];
  try {
    return new RegExp(body ?? text, flags);
  } catch {
    return /$^/;
  }
}

function override(set: Record<string, unknown>, custom: Record<string, unknown>, { id, value }: Property): void {
  if (id.startsWith('custom.')) custom[id.slice('custom.'.length)] = value;
  else set[id] = value;
}

function mapping(value: number | null, mappings: Mapping[]): Mapped | undefined {
  for (const { type, options } of mappings) {
    const found = MAPPINGS[type]?.(value, options);
    if (found) return found;
  }
  return undefined;
}

const MAPPINGS: Record<string, (value: number | null, options: Record<string, unknown>) => Mapped | undefined> = {
  value: (value, options) => (value === null ? undefined : (options[String(value)] as Mapped | undefined)),
  range: (value, options) => {
    const [from, to] = [number(options['from']) ?? -Infinity, number(options['to']) ?? Infinity];
    return value !== null && value >= from && value <= to ? (options['result'] as Mapped) : undefined;
  },
  special: (value, options) =>
    value === null && ['null', 'nan', 'null+nan', 'empty'].includes(String(options['match'])) ? (options['result'] as Mapped) : undefined,
};

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
