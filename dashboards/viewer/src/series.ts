/** Owns what a panel's queries come to: series with a name, a look and one value that stands for them. */

import type { Panel, Target } from './board';
import { seconds, type Range } from './clock';
import { look, type Look } from './fields';
import { expression, sentence, type Scope } from './interpolation';
import { exemplars, instant, over, type Answer, type Exemplar, type Labels } from './prometheus';
import { built, step } from './resolution';

export interface Series extends Answer {
  ref: string;
  name: string;
  look: Look;
}

/** Everything that a panel drew from. */
export interface Found {
  series: Series[];
  exemplars: Exemplar[];
  range: Range;
}

/** When, how finely and with which variables is asked. */
export interface Question {
  range: Range;
  scope: Scope;
  scrape: number;
  pixels: number;
  signal: AbortSignal;
}

type Reduce = (known: number[], all: (number | null)[]) => number | null;

const LEGEND = /\{\{\s*([^}]+?)\s*\}\}/g;

export async function found(panel: Panel, question: Question): Promise<Found> {
  const targets = (panel.targets ?? []).filter((target) => target.expr && !target.hide);
  const answers = await Promise.all(targets.map((target) => answered(panel, target, question)));
  const dots = await Promise.all(targets.filter((target) => target.exemplar).map((target) => dotted(panel, target, question)));
  const series = targets.flatMap((target, at) => (answers[at] ?? []).map((answer) => ({ target, answer })));
  const keys = new Set(series.flatMap(({ answer }) => Object.keys(answer.labels).filter((key) => key !== '__name__')));
  return {
    series: series.map(({ target, answer }) => {
      const plain = name(target, answer.labels, keys.size, question.scope);
      const own = look(panel, [plain], target.refId);
      return { ...answer, ref: target.refId, name: own.name ?? plain, look: own };
    }),
    exemplars: dots.flat(),
    range: question.range,
  };
}

/** One number for a series; null where nothing is known. */
export function reduced(calc: string, values: (number | null)[]): number | null {
  const known = values.filter((value): value is number => value !== null);
  if (calc === 'last') return values.at(-1) ?? null;
  return known.length === 0 ? null : (REDUCE[calc] ?? REDUCE['lastNotNull']!)(known, values);
}

export function calcs(panel: Panel): string {
  const options = panel.options?.['reduceOptions'] as { calcs?: string[] } | undefined;
  return options?.calcs?.[0] ?? 'lastNotNull';
}

const sum = (known: number[]): number => known.reduce((total, value) => total + value, 0);
const REDUCE: Record<string, Reduce> = {
  lastNotNull: (known) => known.at(-1) ?? null,
  firstNotNull: (known) => known[0] ?? null,
  first: (known) => known[0] ?? null,
  mean: (known) => sum(known) / known.length,
  sum,
  min: (known) => Math.min(...known),
  max: (known) => Math.max(...known),
  count: (known) => known.length,
  range: (known) => Math.max(...known) - Math.min(...known),
  diff: (known) => (known.at(-1) ?? 0) - (known[0] ?? 0),
};
export const CALCS: Record<string, string> = {
  lastNotNull: 'Last', last: 'Last', firstNotNull: 'First', first: 'First', mean: 'Mean', sum: 'Total', min: 'Min',
  max: 'Max', count: 'Count', range: 'Range', diff: 'Difference',
};

function asked(panel: Panel, target: Target, { range, scope, scrape, pixels }: Question): { query: string; every: number } {
  const least = seconds(target.interval ?? '') ?? seconds(panel.interval ?? '') ?? scrape;
  const every = step(range, Math.min(pixels, panel.maxDataPoints ?? pixels), least);
  return { query: expression(target.expr ?? '', { ...scope, built: { ...scope.built, ...built(range, every, least) } }), every };
}

function answered(panel: Panel, target: Target, question: Question): Promise<Answer[]> {
  const { query, every } = asked(panel, target, question);
  if (target.instant) return instant(query, question.range.to, question.signal);
  return over(query, question.range, every, question.signal);
}

/** A Prometheus without exemplars draws the same lines. */
async function dotted(panel: Panel, target: Target, question: Question): Promise<Exemplar[]> {
  return exemplars(asked(panel, target, question).query, question.range, question.signal).catch(() => []);
}

function name(target: Target, labels: Labels, keys: number, scope: Scope): string {
  const format = target.legendFormat ?? '';
  if (format && format !== '__auto') return sentence(format.replace(LEGEND, (_, key: string) => labels[key] ?? ''), scope).trim() || '(none)';
  const pairs = Object.entries(labels).filter(([key]) => key !== '__name__');
  if (keys === 1 && pairs.length === 1) return pairs[0]?.[1] || '(none)';
  if (pairs.length === 0) return labels['__name__'] ?? 'Value';
  return `${labels['__name__'] ?? ''}{${pairs.map(([key, value]) => `${key}="${value}"`).join(', ')}}`;
}
