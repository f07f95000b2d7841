/** Owns what the address says: board, time, variables, refresh. The page is what its address says, and nothing else. */

import type { Board } from './board';
import type { Zone } from './clock';

export interface State {
  board: string;
  from: string;
  to: string;
  zone: Zone;
  refresh: string;
  /** By a variable's name; one that is not here has what its board says. */
  variables: Record<string, string[]>;
}

export const REFRESHES = ['', '10s', '30s', '1m', '5m'];

export function read(search: string, boards: Board[]): State {
  const asked = new URLSearchParams(search);
  const board = boards.find(({ uid }) => uid === asked.get('board')) ?? boards[0]!;
  const variables: Record<string, string[]> = {};
  for (const [key, value] of asked) if (key.startsWith('var-')) (variables[key.slice(4)] ??= []).push(value);
  const zone = asked.get('timezone') ?? board.timezone;
  return {
    board: board.uid,
    from: asked.get('from') ?? board.time?.from ?? 'now-6h',
    to: asked.get('to') ?? board.time?.to ?? 'now',
    zone: zone === 'utc' ? 'utc' : 'browser',
    refresh: asked.get('refresh') ?? board.refresh ?? '',
    variables,
  };
}

export function search(state: State): string {
  const said = new URLSearchParams({ board: state.board, from: state.from, to: state.to });
  said.set('refresh', state.refresh);
  said.set('timezone', state.zone);
  for (const [name, values] of Object.entries(state.variables)) for (const value of values) said.append(`var-${name}`, value);
  return `?${said}`;
}

/** Grafana's `/d/uid/name?from=…` as an address of this page; null for what is no board of ours. */
export function fromGrafana(url: string, boards: Board[], state: State): string | null {
  const found = /^\/?d\/([^/?#]+)(?:\/[^?#]*)?(?:\?([^#]*))?$/.exec(url);
  if (!found || !boards.some(({ uid }) => uid === found[1])) return null;
  const asked = new URLSearchParams(found[2] ?? '');
  asked.set('board', found[1] ?? '');
  if (!asked.has('refresh')) asked.set('refresh', state.refresh);
  if (!asked.has('timezone')) asked.set('timezone', state.zone);
  return search(read(`?${asked}`, boards));
}
