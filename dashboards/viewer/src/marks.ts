/** Owns the marks of a board: what happened when, drawn on every graph and listed below them. */

import type { Annotation, Board } from './board';
import { seconds, type Range } from './clock';
import { expression, type Scope } from './interpolation';
import { over, type Answer } from './prometheus';
import { built, step } from './resolution';

export interface Mark {
  from: number;
  to: number;
  kind: string;
  title: string;
  text: string;
  colour: string;
}

export interface Asking {
  range: Range;
  scope: Scope;
  scrape: number;
  signal: AbortSignal;
}

const USUAL_STEP = 60;
const MOST = 500;
const POINTS = 1000;

export function kinds(board: Board): Annotation[] {
  return (board.annotations?.list ?? []).filter((one) => one.expr);
}

/** The kinds that a board shows only once the reader switches them on. */
export function unshown(board: Board): string[] {
  return kinds(board).filter((one) => one.enable === false).map(({ name }) => name);
}

/** The marks of every kind that is not switched off, the oldest first. Raises what Prometheus refuses. */
export async function marks(board: Board, off: ReadonlySet<string>, asking: Asking): Promise<Mark[]> {
  const shown = kinds(board).filter(({ name }) => !off.has(name));
  const found = await Promise.all(shown.map((one) => ofKind(one, asking)));
  return found.flat().sort((one, other) => one.from - other.from).slice(-MOST);
}

async function ofKind(kind: Annotation, { range, scope, scrape, signal }: Asking): Promise<Mark[]> {
  const every = fineness(kind, range, scrape);
  const query = expression(kind.expr ?? '', { ...scope, built: { ...scope.built, ...built(range, every, scrape) } });
  const answers = await over(query, range, every, signal);
  return answers.flatMap((answer) => spans(answer).map(([from, to]) => ({ from, to, ...told(kind, answer) })));
}

/** Seconds between two looks: in a short range as few as graphs have, so that a mark stands where it happened. */
function fineness(kind: Annotation, range: Range, scrape: number): number {
  const rough = (range.to - range.from) / POINTS;
  const least = Math.min(seconds(kind.step ?? '') ?? USUAL_STEP, step(range, POINTS, scrape));
  return Math.max(least, Math.ceil(rough / USUAL_STEP) * USUAL_STEP * Number(rough > USUAL_STEP));
}

/** Steps that follow each other are one mark. */
function spans(answer: Answer): [number, number][] {
  const found: [number, number][] = [];
  let open: [number, number] | undefined;
  answer.times.forEach((at, place) => {
    const value = answer.values[place];
    if (value === null || value === undefined || value === 0) open = undefined;
    else if (open) open[1] = at;
    else found.push((open = [at, at]));
  });
  return found;
}

function told(kind: Annotation, { labels }: Answer): Omit<Mark, 'from' | 'to'> {
  const filled = (format: string | undefined): string =>
    (format ?? '').replace(/\{\{\s*([^}]+?)\s*\}\}/g, (_, key: string) => labels[key] ?? '').trim();
  return { kind: kind.name, title: filled(kind.titleFormat) || kind.name, text: filled(kind.textFormat), colour: kind.iconColor ?? 'blue' };
}
