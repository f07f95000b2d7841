/** Owns the shortcuts: one list, by which they act and by which the help names them. */

import { h } from './dom';

export interface Shortcut {
  keys: string[];
  shown: string;
  does: string;
  act: (key: string) => void;
}

const KEPT = 'context-ledger shortcuts';

/** Listens for shortcuts, unless one types or they are switched off; Escape closes what is open. */
export function listen(shortcuts: Shortcut[]): void {
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return closeMenus();
    const typing = (event.target as Element).closest?.('input, select, textarea, dialog');
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !enabled()) return;
    const found = shortcuts.find(({ keys }) => keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.act(event.key);
  });
  addEventListener('click', (event) => closeMenus(event.target as Node));
}

export function help(shortcuts: Shortcut[]): HTMLDialogElement {
  const rows = shortcuts.map(({ shown, does }) => h('tr', {}, h('th', { scope: 'row' }, h('kbd', {}, shown)), h('td', {}, does)));
  const graphs = h('tr', {}, h('th', { scope: 'row' }, h('kbd', {}, '← → Home End')), h('td', {}, 'In a graph: read its values'));
  const box = h('input', { type: 'checkbox', id: 'shortcuts', checked: enabled(), on: { change: () => localStorage.setItem(KEPT, box.checked ? 'on' : 'off') } });
  const dialog: HTMLDialogElement = h(
    'dialog',
    { 'aria-labelledby': 'help-title' },
    h('h2', { id: 'help-title' }, 'Keyboard'),
    h('table', {}, h('tbody', {}, ...rows, graphs)),
    h('p', {}, h('label', {}, box, ' Shortcuts of a single key')),
    h('button', { type: 'button', on: { click: () => dialog.close() } }, 'Close'),
  );
  return dialog;
}

function enabled(): boolean {
  return localStorage.getItem(KEPT) !== 'off';
}

/** Closes the menus that do not hold this. */
function closeMenus(inside?: Node): void {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>('details.menu[open], details.links[open]')) {
    if (inside && menu.contains(inside)) continue;
    const focused = menu.contains(document.activeElement);
    menu.open = false;
    if (focused && !inside) menu.querySelector('summary')?.focus();
  }
}
