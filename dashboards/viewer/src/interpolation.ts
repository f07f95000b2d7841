/** Owns how `$name` in a query, a link or a text becomes what was chosen. */

export const ALL = '$__all';
const NAMED = /\$\{([A-Za-z_]\w*)((?:\.\w+|\["[^"\]]*"\])*)(?::(\w+))?\}|\$([A-Za-z_]\w*)/g;

/** A variable with what is chosen of it. `pattern`: it may stand for several values, so it is used in a pattern. */
export interface Chosen {
  values: string[];
  pattern: boolean;
  /** What stands for all of them, if it is said. */
  all: string | null;
  everything: boolean;
}

export interface Scope {
  variables: ReadonlyMap<string, Chosen>;
  built: Record<string, string>;
}

type Format = (chosen: Chosen, name: string) => string;

/** A PromQL expression, with each value so that it can neither leave its string nor be a pattern. */
export function expression(text: string, scope: Scope): string {
  return replaced(text, scope, promql);
}

/** A text for people. */
export function sentence(text: string, scope: Scope): string {
  return replaced(text, scope, (chosen) => chosen.values.join(' + '));
}

/** An address; `fields` gives the values of a row, by `__value.raw`, `__data.fields["Agent"]` and so on. */
export function address(text: string, scope: Scope, fields: (path: string) => string | undefined): string {
  return text.replace(NAMED, (whole: string, name?: string, path?: string, format?: string, bare?: string) => {
    const key = name ?? bare ?? '';
    const field = fields(`${key}${path ?? ''}`);
    if (field !== undefined) return format === 'raw' ? field : encodeURIComponent(field);
    const inserted = scope.built[key];
    if (inserted !== undefined) return inserted;
    const chosen = scope.variables.get(key);
    return chosen ? (FORMATS[format ?? 'percentencode'] ?? percent)(chosen, key) : whole;
  });
}

export function chosenQuery(name: string, chosen: Chosen): string {
  const values = chosen.everything ? [ALL] : chosen.values;
  return values.map((value) => `var-${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');
}

function replaced(text: string, scope: Scope, usual: Format): string {
  return text.replace(NAMED, (whole: string, name?: string, _path?: string, format?: string, bare?: string) => {
    const key = name ?? bare ?? '';
    const built = scope.built[key];
    if (built !== undefined) return built;
    const chosen = scope.variables.get(key);
    return chosen ? ((format ? FORMATS[format] : undefined) ?? usual)(chosen, key) : whole;
  });
}

function promql(chosen: Chosen): string {
  if (chosen.everything && chosen.all !== null) return chosen.all;
  if (!chosen.pattern) return quoted(chosen.values.join(','));
  const values = chosen.values.map(literal);
  return values.length === 1 ? (values[0] ?? '') : `(${values.join('|')})`;
}

const quoted = (value: string): string => value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
const literal = (value: string): string => quoted(value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
const percent: Format = (chosen) => encodeURIComponent(chosen.values.join(','));
const FORMATS: Record<string, Format> = {
  raw: (chosen) => (chosen.everything && chosen.all !== null ? chosen.all : chosen.values.join(',')),
  csv: (chosen) => chosen.values.join(','),
  pipe: (chosen) => chosen.values.join('|'),
  text: (chosen) => chosen.values.join(' + '),
  regex: promql,
  percentencode: percent,
  queryparam: (chosen, name) => chosenQuery(name, chosen),
};
