/** Owns a panel: its place, its frame and title, and what it tells when it is drawn. */

import { LoadingState, type GrafanaTheme2, type TimeRange } from '@grafana/data';
import { PanelChrome } from '@grafana/ui';
import { useEffect, useState } from 'react';
import type { Panel } from '../../viewer/src/board';
import type { Question } from '../../viewer/src/series';
import type { Told } from './asked';
import { drawing, filled, type Drawing } from './drawing';
import { EDGE, KINDS, Nothing } from './kinds';

interface Shown {
  panel: Panel;
  question: Omit<Question, 'pixels'>;
  range: TimeRange;
  theme: GrafanaTheme2;
  width: number;
  height: number;
}

export function Framed(shown: Shown) {
  const { panel, question, theme, width, height } = shown;
  const [drawn, draw] = useState<Drawing | null>(null);
  const [error, fail] = useState('');
  useEffect(() => {
    drawing(panel, { ...question, pixels: width }, theme).then(
      (made) => (draw(made), tell(panel, filled(panel, made), '')),
      (reason: unknown) => (fail(String(reason)), tell(panel, 0, String(reason))),
    );
  }, []);
  const state = drawn || error ? LoadingState.Done : LoadingState.Loading;
  return (
    <PanelChrome
      title={panel.title ?? ''}
      description={panel.description ?? ''}
      width={width}
      height={height}
      padding={EDGE.has(panel.type) ? 'none' : 'md'}
      loadingState={state}
      {...(error && { statusMessage: error })}
    >
      {(inner, below) => (drawn ? <Inside {...shown} {...drawn} width={inner} height={below} /> : <i>{error}</i>)}
    </PanelChrome>
  );
}

function Inside(shown: Shown & Drawing) {
  const Kind = KINDS[shown.panel.type];
  if (!Kind) return <i>{`no picture of a panel of kind ${shown.panel.type}`}</i>;
  // A number says itself that there is none.
  const empty = shown.panel.type !== 'text' && shown.panel.type !== 'stat' && filled(shown.panel, shown) === 0;
  return empty ? <Nothing {...shown} /> : <Kind {...shown} />;
}

function tell(panel: Panel, drawn: number, error: string): void {
  const known = KINDS[panel.type] !== undefined;
  const state: Told['state'] = error || !known ? 'error' : drawn > 0 || panel.type === 'text' ? 'ok' : 'empty';
  window.told.push({ title: panel.title ?? '', kind: panel.type, state, drawn, error: known ? error : 'a kind that is not known' });
}
