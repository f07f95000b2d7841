/** Owns the questions to Prometheus, by way of our own server, and what its answers look like. */

import type { Range } from './clock';

export type Labels = Record<string, string>;

/** A series: what it was at each time; null where it was nothing, or no number. */
export interface Answer {
  labels: Labels;
  times: number[];
  values: (number | null)[];
}

export interface Exemplar {
  at: number;
  value: number;
  labels: Labels;
}

/** Why there is no answer: `kind` is Prometheus' errorType, or one of our server's. */
export class Refused extends Error {
  constructor(
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

interface Raw {
  metric: Labels;
  value?: [number, string];
  values?: [number, string][];
}

interface Result {
  resultType: string;
  result: Raw[] | [number, string];
}

type Parameters = Record<string, string | number>;

export async function instant(query: string, time: number, signal: AbortSignal): Promise<Answer[]> {
  const data = await ask<Result>('query', { query, time }, signal);
  const raws = data.resultType === 'scalar' ? [{ metric: {}, value: data.result as [number, string] }] : (data.result as Raw[]);
  return raws.map((raw) => series(raw.metric, raw.values ?? (raw.value ? [raw.value] : [])));
}

/** Times are whole steps, so that a refresh moves no point. */
export async function over(query: string, range: Range, step: number, signal: AbortSignal): Promise<Answer[]> {
  const start = Math.floor(range.from / step) * step;
  const end = Math.floor(range.to / step) * step;
  const data = await ask<Result>('query_range', { query, start, end: Math.max(start, end), step }, signal);
  return (data.result as Raw[]).map((raw) => gridded(raw, start, end, step));
}

export async function labelValues(label: string, match: string, range: Range, signal: AbortSignal): Promise<string[]> {
  const times = { start: range.from, end: range.to };
  return ask<string[]>(`label/${label}/values`, match ? { 'match[]': match, ...times } : times, signal);
}

export async function exemplars(query: string, range: Range, signal: AbortSignal): Promise<Exemplar[]> {
  type Found = { exemplars: { labels: Labels; value: string; timestamp: number }[] };
  const found = await ask<Found[]>('query_exemplars', { query, start: range.from, end: range.to }, signal);
  return found
    .flatMap((one) => one.exemplars)
    .map((one) => ({ at: one.timestamp, value: Number(one.value), labels: one.labels }))
    .filter((one) => Number.isFinite(one.value));
}

async function ask<Data>(path: string, parameters: Parameters, signal: AbortSignal): Promise<Data> {
  const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
  const answer = await fetch(`api/v1/${path}?${query}`, { signal }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new Refused('gone', 'The server of this page does not answer: start `context-ledger dashboard` again.');
  });
  const told = await answer.json().catch(() => null) as { status?: string; data?: Data; errorType?: string; error?: string } | null;
  if (told?.status === 'success') return told.data as Data;
  throw new Refused(told?.errorType ?? 'unknown', told?.error ?? `The server answered ${answer.status}.`);
}

function series(labels: Labels, points: [number, string][]): Answer {
  return { labels, times: points.map(([at]) => at), values: points.map(([, value]) => finite(value)) };
}

/** A step without a value is a gap. */
function gridded(raw: Raw, start: number, end: number, step: number): Answer {
  const known = new Map((raw.values ?? []).map(([at, value]) => [Math.round((at - start) / step), finite(value)]));
  const count = Math.floor((end - start) / step + 1e-6) + 1;
  const places = Array.from({ length: Math.max(0, count) }, (_, place) => place);
  return {
    labels: raw.metric,
    times: places.map((place) => start + place * step),
    values: places.map((place) => known.get(place) ?? null),
  };
}

function finite(text: string): number | null {
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}
