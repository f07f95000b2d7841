/** Owns how the values of a variable are chosen: several by boxes, one from a list, or one's own. */

import { h } from './dom';
import { ALL } from './interpolation';
import type { Offer } from './variables';

type Changed = (values: string[]) => void;

const OWN = '\u0000own';
const NAMED = 2;

export function chooser(offer: Offer, changed: Changed): HTMLElement {
  if (offer.variable.type === 'textbox') return h('label', { class: 'field' }, offer.label, written(offer, changed));
  return offer.variable.multi ? boxes(offer, changed) : list(offer, changed);
}

function boxes({ variable, label, options, chosen }: Offer, changed: Changed): HTMLElement {
  const gone = chosen.filter((value) => value !== ALL && !options.includes(value));
  const choices = [...(variable.includeAll ? [ALL] : []), ...options, ...gone];
  const inputs = choices.map((value) => h('input', { type: 'checkbox', value, checked: chosen.includes(value), 'data-key': `${variable.name} ${value}` }));
  const change = (event: Event): void => {
    const last = (event.target as HTMLInputElement).value;
    const wanted = inputs.filter(({ checked, value }) => checked && (value === ALL) === (last === ALL)).map(({ value }) => value);
    changed(wanted.length > 0 ? wanted : [variable.includeAll ? ALL : (options[0] ?? '')]);
  };
  const rows = inputs.map((input) => h('label', {}, input, input.value === ALL ? 'All' : input.value || '(none)'));
  const title = chosen.includes(ALL) ? 'All' : chosen.slice(0, NAMED).join(', ') + (chosen.length > NAMED ? ` and ${chosen.length - NAMED} more` : '');
  const empty = choices.length <= 1 ? h('p', { class: 'note' }, 'No values in this range') : null;
  const drop = h('fieldset', { class: 'drop', on: { change } }, h('legend', { class: 'unseen' }, label), ...rows, empty);
  return h('details', { class: 'menu', 'data-variable': variable.name }, h('summary', { 'data-key': variable.name }, h('span', { class: 'dim' }, `${label}: `), title), drop);
}

function list(offer: Offer, changed: Changed): HTMLElement {
  const { variable, label, options, chosen } = offer;
  const own = chosen.filter((value) => value !== ALL && !options.includes(value));
  const choices = [...(variable.includeAll ? [ALL] : []), ...options, ...own];
  const items = choices.map((value) => h('option', { value, selected: chosen.includes(value) }, value === ALL ? 'All' : value));
  if (variable.allowCustomValue !== false) items.push(h('option', { value: OWN }, 'Other …'));
  const select = h('select', { 'data-key': variable.name }, ...items);
  const whole = h('label', { class: 'field', 'data-variable': variable.name }, h('span', { class: 'dim' }, label), select);
  select.addEventListener('change', () => {
    if (select.value !== OWN) return changed([select.value]);
    const input = written(offer, changed);
    select.replaceWith(input);
    input.select();
  });
  return whole;
}

function written({ variable, chosen }: Offer, changed: Changed): HTMLInputElement {
  const input = h('input', { value: chosen[0] ?? '', size: 8, maxlength: 200, autocomplete: 'off', 'data-key': variable.name });
  input.addEventListener('change', () => input.value.trim() && changed([input.value.trim()]));
  input.addEventListener('focus', () => input.select());
  queueMicrotask(() => input.isConnected && document.activeElement === document.body && input.focus());
  return input;
}
