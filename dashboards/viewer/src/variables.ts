/** Owns the variables of a board: what they offer, what is chosen of them. */

import type { Board, Option, Variable } from './board';
import type { Range } from './clock';
import { pattern } from './fields';
import { ALL, expression, type Chosen, type Scope } from './interpolation';
import { labelValues } from './prometheus';

export interface Offer {
  variable: Variable;
  label: string;
  options: string[];
  /** `$__all` where everything is. */
  chosen: string[];
  shown: boolean;
}

const VALUES = /^\s*label_values\(\s*(?:(.+?)\s*,\s*)?([A-Za-z_]\w*)\s*\)\s*$/s;
const HIDDEN = new Set<unknown>([2, 'hideVariable', 'inControlsMenu']);

export interface Asked {
  range: Range;
  scope: Scope;
  signal: AbortSignal;
}

/** The variables in their order, each asked for with those before it. */
export async function offers(board: Board, chosen: Record<string, string[]>, asked: Asked): Promise<Offer[]> {
  const found: Offer[] = [];
  for (const variable of board.templating?.list ?? []) {
    const options = await offered(variable, { ...asked, scope: { ...asked.scope, variables: map(found) } });
    found.push(offer(variable, options, chosen[variable.name]));
  }
  return found;
}

/** The same with nothing asked: only what the board and the address say. */
export function unasked(board: Board, chosen: Record<string, string[]>): Offer[] {
  return (board.templating?.list ?? []).map((variable) => offer(variable, listed(variable), chosen[variable.name]));
}

export function map(found: Offer[]): Map<string, Chosen> {
  return new Map(found.map((one) => [one.variable.name, ofOffer(one)]));
}

function ofOffer({ variable, options, chosen }: Offer): Chosen {
  const everything = chosen.includes(ALL);
  return {
    values: everything ? options : chosen,
    pattern: Boolean(variable.multi || variable.includeAll),
    all: variable.allValue || null,
    everything,
  };
}

async function offered(variable: Variable, { range, scope, signal }: Asked): Promise<string[]> {
  if (variable.type !== 'query') return listed(variable);
  const query = typeof variable.query === 'string' ? variable.query : (variable.query?.query ?? variable.definition ?? '');
  const [, metric, label] = VALUES.exec(query) ?? [];
  if (!label) throw new Error(`The variable ${variable.name} asks for what this page does not know: ${query}`);
  const values = await labelValues(label, metric ? expression(metric, scope) : '', range, signal);
  const kept = variable.regex ? values.filter((value) => pattern(variable.regex ?? '').test(value)) : values;
  return variable.sort && variable.sort % 2 === 0 ? kept.sort().reverse() : kept.sort();
}

function listed(variable: Variable): string[] {
  if (variable.type === 'query') return [];
  if (variable.type === 'datasource') return ['default'];
  const options = (variable.options ?? []).flatMap((option) => text(option.value)).filter((value) => value !== ALL);
  if (options.length > 0) return options;
  const query = typeof variable.query === 'string' ? variable.query : '';
  return variable.type === 'textbox' || variable.type === 'constant' ? [query] : query.split(',').map((one) => one.trim()).filter(Boolean);
}

function offer(variable: Variable, options: string[], asked: string[] | undefined): Offer {
  const usual = text(variable.current?.value);
  const fallback = variable.includeAll ? [ALL] : options.slice(0, 1);
  const chosen = (asked?.length ? asked : usual).filter((value) => value !== '');
  return {
    variable,
    label: variable.label || variable.name,
    options,
    chosen: chosen.length ? chosen : fallback,
    shown: variable.type !== 'datasource' && variable.type !== 'constant' && !HIDDEN.has(variable.hide),
  };
}

function text(value: Option['value'] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}
