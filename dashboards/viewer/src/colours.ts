/** Owns what a colour's name looks like, dark and light, and which one a value or a series has. */

import type { Step, Thresholds } from './board';

/** Grafana's names; in the light theme darker, so that text in them can be read. */
const DARK: Record<string, string> = { red: '#f2495c', orange: '#ff9830', yellow: '#fade2a', green: '#73bf69', blue: '#6e9fff', purple: '#b877d9' };
const LIGHT: Record<string, string> = { red: '#c4162a', orange: '#b3500b', yellow: '#8a6500', green: '#1f7a2e', blue: '#1f60c4', purple: '#7c2ea3' };
/** Told apart by those who see few colours, too (after Okabe and Ito); no red, which would say that something is wrong. */
const SERIES_DARK = ['#6e9fff', '#e69f00', '#2bc8a4', '#d98ec4', '#f0e442', '#9cd3f5', '#c8a16b', '#b0b6c2'];
const SERIES_LIGHT = ['#1f60c4', '#b36b00', '#00795c', '#a8478c', '#857600', '#2e86b8', '#7a5525', '#5c6370'];
const SHADES: Record<string, number> = { 'super-light': 0.45, light: 0.25, 'semi-dark': -0.15, dark: -0.3 };
const CONTINUOUS: Record<string, string[]> = {
  'continuous-GrYlRd': ['green', 'yellow', 'red'],
  'continuous-RdYlGr': ['red', 'yellow', 'green'],
  'continuous-BlYlRd': ['blue', 'yellow', 'red'],
  'continuous-YlRd': ['yellow', 'red'],
  'continuous-BlPu': ['blue', 'purple'],
  'continuous-YlBl': ['yellow', 'blue'],
  'continuous-blues': ['super-light-blue', 'dark-blue'],
  'continuous-reds': ['super-light-red', 'dark-red'],
  'continuous-greens': ['super-light-green', 'dark-green'],
  'continuous-purples': ['super-light-purple', 'dark-purple'],
};

export interface Theme {
  dark: boolean;
  text: string;
  muted: string;
  grid: string;
  panel: string;
}

/** How a series or value is coloured: Grafana's `color` of a field. */
export interface Colouring {
  mode?: string;
  fixedColor?: string;
}

export function paint(name: string, theme: Theme): string {
  if (name === 'text') return theme.text;
  if (name === 'transparent' || name.startsWith('#') || name.startsWith('rgb')) return name;
  const [, shade, base] = /^(?:(super-light|light|semi-dark|dark)-)?(\w+)$/.exec(name) ?? [];
  const colour = (theme.dark ? DARK : LIGHT)[base ?? ''];
  if (!colour) return theme.muted;
  const change = SHADES[shade ?? ''] ?? 0;
  return mixed(colour, change > 0 ? '#ffffff' : '#000000', Math.abs(change));
}

export function ofSeries(place: number, theme: Theme): string {
  const palette = theme.dark ? SERIES_DARK : SERIES_LIGHT;
  return palette[place % palette.length] ?? theme.text;
}

/** The colour of the highest threshold that the value reaches. */
export function ofThreshold(value: number | null, thresholds: Thresholds | undefined, share: number, theme: Theme): string {
  const steps = thresholds?.steps ?? [];
  const measured = thresholds?.mode === 'percentage' ? share * 100 : (value ?? -Infinity);
  const reached = steps.filter((step: Step) => step.value === null || step.value === undefined || measured >= step.value);
  return paint(reached.at(-1)?.color ?? 'text', theme);
}

/** A colour between those of a scheme; `share` is where the value lies between least and most. */
export function ofScheme(mode: string, share: number, theme: Theme): string | null {
  const names = CONTINUOUS[mode];
  if (!names) return null;
  const at = Math.min(1, Math.max(0, share)) * (names.length - 1);
  const low = Math.min(Math.floor(at), names.length - 2);
  return mixed(paint(names[low] ?? 'text', theme), paint(names[low + 1] ?? 'text', theme), at - low);
}

export function faded(colour: string, opacity: number): string {
  const [red, green, blue] = parts(colour);
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

/** Black or white, whichever can be read on a colour (WCAG's relative luminance). */
export function legible(colour: string): string {
  const [red, green, blue] = parts(colour).map((part) => {
    const light = part / 255;
    return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#111217' : '#ffffff';
}

function mixed(one: string, other: string, share: number): string {
  const [left, right] = [parts(one), parts(other)];
  const hex = left.map((part, at) => Math.round(part + ((right[at] ?? part) - part) * share).toString(16).padStart(2, '0'));
  return `#${hex.join('')}`;
}

function parts(colour: string): [number, number, number] {
  const digits = colour.startsWith('#') ? colour.slice(1) : '';
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  if (full.length >= 6) return [0, 2, 4].map((at) => parseInt(full.slice(at, at + 2), 16)) as [number, number, number];
  const found = colour.match(/\d+(\.\d+)?/g)?.map(Number) ?? [];
  return [found[0] ?? 128, found[1] ?? 128, found[2] ?? 128];
}
