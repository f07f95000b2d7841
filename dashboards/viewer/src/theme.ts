/** Owns dark and light: as the system asks, unless the reader chose. */

import type { Theme } from './colours';
import { shade } from './dom';

const KEPT = 'context-ledger theme';
const SYSTEM = matchMedia('(prefers-color-scheme: light)');

export function dark(): boolean {
  const chosen = localStorage.getItem(KEPT);
  return chosen ? chosen === 'dark' : !SYSTEM.matches;
}

export function theme(): Theme {
  return { dark: dark(), text: shade('text'), muted: shade('muted'), grid: shade('grid'), panel: shade('panel') };
}

/** Dresses the page, now and whenever the system changes its mind. */
export function dress(changed: () => void): void {
  const apply = (): void => void (document.documentElement.dataset['theme'] = dark() ? 'dark' : 'light');
  apply();
  SYSTEM.addEventListener('change', () => (apply(), changed()));
}

export function turn(): void {
  localStorage.setItem(KEPT, dark() ? 'light' : 'dark');
  document.documentElement.dataset['theme'] = dark() ? 'dark' : 'light';
}
