/** Starts the page with what the server tells of itself. */

import type { About } from './board';
import { h } from './dom';
import { Page } from './page';

async function start(): Promise<void> {
  const answer = await fetch('viewer.json');
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  new Page((await answer.json()) as About);
}

start().catch((error: unknown) => {
  document.body.replaceChildren(h('p', { class: 'banner', role: 'alert' }, `The page cannot start. ${error instanceof Error ? error.message : ''}`));
});
