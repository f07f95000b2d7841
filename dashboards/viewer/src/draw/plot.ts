/** Owns how lines become a plot of uPlot: scales, axes, stacks, and what is drawn over them. */

import uPlot from 'uplot';
import type { Step } from '../board';
import { ticks } from '../clock';
import { faded, paint } from '../colours';
import { written, type Look } from '../fields';
import type { Exemplar } from '../prometheus';
import type { Found, Series } from '../series';
import { trace } from './table';
import type { Canvas } from './canvas';

export interface Line extends Series {
  colour: string;
}

export interface Dot {
  x: number;
  y: number;
  exemplar: Exemplar;
}

export interface Plot {
  chart: uPlot;
  /** The values of the lines, not stacked, by the chart's index. */
  values: (number | null)[][];
  dots: Dot[];
}

const FONT = '12px system-ui, sans-serif';
const MOST_LINES = 16;
/** Bytes are told apart by powers of two. */
const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);
const PATHS = { linear: uPlot.paths.linear!(), stepAfter: uPlot.paths.stepped!({ align: 1 }), bars: uPlot.paths.bars!({ size: [0.8, 40] }) };

export function stacked(lines: Line[]): boolean {
  return lines.some(({ look }) => (look.custom['stacking'] as { mode?: string } | undefined)?.mode === 'normal');
}

export function plot(holder: HTMLElement, lines: Line[], found: Found, canvas: Canvas, moved: (made: Plot) => void): Plot {
  const { times, values } = aligned(lines);
  const piled = stacked(lines);
  const data = [times, ...(piled ? piles(values) : values)] as uPlot.AlignedData;
  const made: Plot = { chart: undefined as never, values, dots: [] };
  const over = (chart: uPlot): void => void (made.dots = overlay(chart, lines, found, canvas));
  const options: uPlot.Options = {
    width: holder.clientWidth,
    height: holder.clientHeight,
    padding: [8, 22, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: 'board' }, y: false, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: { x: { time: true, range: [found.range.from, found.range.to] }, ...scales(lines, piled) },
    axes: [axisOfTime(canvas), ...axes(lines, canvas)],
    series: [{}, ...lines.map((line) => drawn(line, piled, scaleOf(line, lines[0]), lines.length))],
    bands: piled ? lines.slice(1).map((_, at) => ({ series: [at + 2, at + 1] as [number, number] })) : between(lines),
    hooks: {
      draw: [over],
      setCursor: [() => moved(made)],
      setSelect: [(chart: uPlot) => zoomed(chart, canvas)],
    },
  };
  made.chart = new uPlot(options, data, holder);
  return made;
}

/** All lines on the same times. */
function aligned(lines: Line[]): { times: number[]; values: (number | null)[][] } {
  const times = [...new Set(lines.flatMap((line) => line.times))].sort((one, other) => one - other);
  const values = lines.map((line) => {
    if (line.times.length === times.length) return line.values;
    const known = new Map(line.times.map((at, place) => [at, line.values[place] ?? null]));
    return times.map((at) => known.get(at) ?? null);
  });
  return { times, values };
}

function piles(values: (number | null)[][]): (number | null)[][] {
  const total = (values[0] ?? []).map(() => 0);
  return values.map((line) => line.map((value, at) => (value === null ? null : (total[at] = (total[at] ?? 0) + value))));
}

const scaleOf = (line: Line, first: Line | undefined): string => (line.look.unit === first?.look.unit ? 'y' : `y ${line.look.unit}`);

function scales(lines: Line[], piled: boolean): Record<string, uPlot.Scale> {
  const named = new Map(lines.map((line) => [scaleOf(line, lines[0]), line.look]));
  return Object.fromEntries([...named].map(([name, look]) => [name, { range: (_: uPlot, low: number | null, high: number | null) => bounds(low, high, look, piled) }]));
}

function bounds(low: number | null, high: number | null, look: Look, piled: boolean): [number, number] {
  const soft = [look.custom['axisSoftMin'], look.custom['axisSoftMax']] as (number | undefined)[];
  const least = look.min ?? Math.min(low ?? 0, soft[0] ?? Infinity, piled ? 0 : Infinity);
  const most = look.max ?? Math.max(high ?? 1, soft[1] ?? -Infinity);
  const length = most > least ? most - least : Math.abs(least) || 1;
  const room = length * 0.08;
  return [look.min ?? (least === 0 ? 0 : least - room), look.max ?? Math.max(most, least + length) + room];
}

function axisOfTime({ theme, zone }: Canvas): uPlot.Axis {
  return {
    stroke: theme.muted, font: FONT, grid: { stroke: theme.grid, width: 1 }, ticks: { show: false }, space: 72, size: 28,
    values: (_chart, splits, _axis, _space, increment) => ticks(splits, increment, zone),
  };
}

function axes(lines: Line[], { theme }: Canvas): uPlot.Axis[] {
  const named = new Map(lines.map((line) => [scaleOf(line, lines[0]), line.look]));
  return [...named].map(([scale, look], at) => ({
    scale, side: at === 0 ? 3 : 1, stroke: theme.muted, font: FONT, space: 32,
    grid: { show: at === 0, stroke: theme.grid, width: 1 }, ticks: { show: false },
    size: (_chart: uPlot, values: string[] | null) => 16 + Math.max(3, ...(values ?? []).map((value) => value.length)) * 7,
    values: (_chart: uPlot, splits: number[]) => labels(splits, look),
    ...(look.unit === 'bytes' || look.unit === 'binBps' ? { incrs: BINARY } : {}),
  }));
}

/** As exact as they are, whatever a board says of its values. */
function labels(splits: number[], look: Look): string[] {
  return splits.map((value) => written(value, { ...look, decimals: undefined, mappings: [] }).text);
}

/** Areas that lie upon each other are paler, the more there are. */
function drawn(line: Line, piled: boolean, scale: string, count: number): uPlot.Series {
  const { custom } = line.look;
  const style = custom['lineStyle'] as { fill?: string; dash?: number[] } | undefined;
  const opacity = Number(custom['fillOpacity'] ?? 0) / 100;
  const shape = custom['drawStyle'] === 'bars' ? 'bars' : custom['lineInterpolation'] === 'stepAfter' ? 'stepAfter' : 'linear';
  return {
    label: line.name,
    scale,
    stroke: line.colour,
    width: Number(custom['lineWidth'] ?? 1) + 0.5,
    ...(opacity > 0 ? { fill: faded(line.colour, piled ? Math.max(opacity, 0.3) : opacity * Math.min(1, 2 / count)) } : {}),
    ...(style?.fill === 'dash' ? { dash: style.dash ?? [10, 10] } : style?.fill === 'dot' ? { dash: [2, 6] } : {}),
    paths: PATHS[shape],
    points: custom['showPoints'] === 'always' || custom['drawStyle'] === 'points' ? { show: true, size: 4 } : { show: () => false, size: 5, filter: alone },
  };
}

/** A value without neighbours is no line; it is drawn as a point. */
function alone(chart: uPlot, at: number): number[] {
  const values = chart.data[at] ?? [];
  const known = (place: number): boolean => values[place] !== null && values[place] !== undefined;
  return Array.from(values.keys()).filter((place) => known(place) && !known(place - 1) && !known(place + 1));
}

function between(lines: Line[]): uPlot.Band[] {
  return lines.flatMap((line, at) => {
    const lower = lines.findIndex(({ name }) => name === line.look.custom['fillBelowTo']);
    return lower < 0 ? [] : [{ series: [at + 1, lower + 1] as [number, number], fill: faded(line.colour, 0.15) }];
  });
}

function zoomed(chart: uPlot, canvas: Canvas): void {
  const { left, width } = chart.select;
  if (width < 4) return;
  canvas.zoom({ from: Math.round(chart.posToVal(left, 'x')), to: Math.round(chart.posToVal(left + width, 'x')) });
}

function overlay(chart: uPlot, lines: Line[], found: Found, canvas: Canvas): Dot[] {
  const pen = chart.ctx;
  pen.save();
  pen.beginPath();
  pen.rect(chart.bbox.left, chart.bbox.top, chart.bbox.width, chart.bbox.height);
  pen.clip();
  limits(chart, lines, canvas);
  marked(chart, canvas);
  const dots = dotted(chart, found.exemplars, canvas);
  pen.restore();
  return dots;
}

function limits(chart: uPlot, lines: Line[], { theme }: Canvas): void {
  const look = lines[0]?.look;
  const mode = (look?.custom['thresholdsStyle'] as { mode?: string } | undefined)?.mode ?? 'off';
  const steps = look?.thresholds?.steps ?? [];
  if (mode === 'off') return;
  steps.forEach((step, at) => {
    if (step.value === null || step.value === undefined) return;
    const colour = paint(step.color === 'transparent' ? (steps[at - 1]?.color ?? 'text') : step.color, theme);
    const y = chart.valToPos(step.value, 'y', true);
    if (mode.includes('area')) area(chart, y, steps[at + 1], faded(colour, 0.1));
    if (mode.startsWith('line') || mode.startsWith('dashed')) across(chart, y, colour, mode.startsWith('dashed'));
  });
}

function area(chart: uPlot, y: number, next: Step | undefined, colour: string): void {
  const top = next?.value === null || next?.value === undefined ? chart.bbox.top : chart.valToPos(next.value, 'y', true);
  chart.ctx.fillStyle = colour;
  chart.ctx.fillRect(chart.bbox.left, top, chart.bbox.width, y - top);
}

function across(chart: uPlot, y: number, colour: string, dashed: boolean): void {
  const pen = chart.ctx;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5 * devicePixelRatio;
  pen.setLineDash(dashed ? [8 * devicePixelRatio, 6 * devicePixelRatio] : []);
  pen.beginPath();
  pen.moveTo(chart.bbox.left, y);
  pen.lineTo(chart.bbox.left + chart.bbox.width, y);
  pen.stroke();
}

/** Few marks of a kind are lines, many are ticks at the foot, so that what they stand beside can still be seen. */
function marked(chart: uPlot, { marks, theme }: Canvas): void {
  const counts = new Map<string, number>();
  for (const { kind } of marks) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  for (const mark of marks) {
    const [left, right] = [mark.from, mark.to].map((at) => chart.valToPos(at, 'x', true)) as [number, number];
    const many = (counts.get(mark.kind) ?? 0) > MOST_LINES;
    const colour = paint(mark.colour, theme);
    chart.ctx.fillStyle = faded(colour, 0.07);
    if (right > left && !many) chart.ctx.fillRect(left, chart.bbox.top, right - left, chart.bbox.height);
    many ? ticked(chart, left, right, colour) : flagged(chart, left, colour);
  }
}

function ticked(chart: uPlot, left: number, right: number, colour: string): void {
  const height = 6 * devicePixelRatio;
  chart.ctx.fillStyle = faded(colour, 0.75);
  chart.ctx.fillRect(left, chart.bbox.top + chart.bbox.height - height, Math.max(right - left, 1.5 * devicePixelRatio), height);
}

function flagged(chart: uPlot, left: number, colour: string): void {
  const pen = chart.ctx;
  const bottom = chart.bbox.top + chart.bbox.height;
  const size = 5 * devicePixelRatio;
  pen.strokeStyle = faded(colour, 0.5);
  pen.lineWidth = devicePixelRatio;
  pen.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  pen.beginPath();
  pen.moveTo(left, chart.bbox.top);
  pen.lineTo(left, bottom);
  pen.stroke();
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(left - size, bottom);
  pen.lineTo(left + size, bottom);
  pen.lineTo(left, bottom - 1.6 * size);
  pen.fill();
}

/** A dot whose value is off the scale stands at its edge, and whole. */
function dotted(chart: uPlot, exemplars: Exemplar[], { theme }: Canvas): Dot[] {
  const radius = 4 * devicePixelRatio;
  const { left, top, width, height } = chart.bbox;
  return exemplars.map((exemplar) => {
    const x = within(chart.valToPos(exemplar.at, 'x', true), left + radius, left + width - radius);
    const y = within(chart.valToPos(exemplar.value, 'y', true), top + radius, top + height - radius);
    chart.ctx.fillStyle = paint('orange', theme);
    chart.ctx.strokeStyle = theme.panel;
    chart.ctx.setLineDash([]);
    chart.ctx.beginPath();
    chart.ctx.arc(x, y, radius, 0, 2 * Math.PI);
    chart.ctx.fill();
    chart.ctx.stroke();
    return { x: (x - left) / devicePixelRatio, y: (y - top) / devicePixelRatio, exemplar };
  });
}

function within(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** What is near the pointer of exemplars. */
export function near({ chart, dots }: Plot): string[] {
  const { left, top } = chart.cursor;
  if (left === undefined || top === undefined) return [];
  return dots.filter(({ x, y }) => Math.hypot(x - left, y - top) < 12).map(({ exemplar }) => trace(exemplar.labels));
}
