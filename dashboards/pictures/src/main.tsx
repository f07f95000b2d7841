/** Owns the start: a board as Grafana's components draw it, once fonts are there, with every panel where the board puts
 *  it. Of rows there is the title. */

import { createTheme, dateTime, ThemeContext, type TimeRange } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { GlobalStyles, PortalContainer } from '@grafana/ui';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import type { Panel } from '../../viewer/src/board';
import type { Question } from '../../viewer/src/series';
import { map, offers, type Offer } from '../../viewer/src/variables';
import { register } from './options';
import { Framed } from './panel';

const GAP = 8;
const ROW = 30;
const EDGE = 16;
const COLUMNS = 24;

const { board, theme: mode, range, scrape } = window.asked;
const theme = createTheme({ colors: { mode } });
const span: TimeRange = { from: dateTime(range.from * 1000), to: dateTime(range.to * 1000), raw: { from: '', to: '' } };
const column = (window.innerWidth - 2 * EDGE + GAP) / COLUMNS;
const panels = board.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);

function Placed({ panel, question }: { panel: Panel; question: Omit<Question, 'pixels'> }) {
  const { x, y, w, h } = panel.gridPos;
  const place = { left: x * column, top: y * (ROW + GAP), width: w * column - GAP, height: h * (ROW + GAP) - GAP };
  const inside = panel.type === 'row'
    ? <h5 style={{ margin: 0, lineHeight: `${ROW}px` }}>{panel.title}</h5>
    : <Framed panel={panel} question={question} range={span} theme={theme} width={place.width} height={place.height} />;
  return <div data-panel={panel.title} data-kind={panel.type} style={{ position: 'absolute', ...place }}>{inside}</div>;
}

function Head({ found }: { found: Offer[] }) {
  const chosen = found.filter((one) => one.shown).map((one) => `${one.label}: ${one.chosen.join(' + ').replace('$__all', 'All')}`);
  return (
    <header style={{ display: 'flex', gap: 24, alignItems: 'baseline', height: 40 }}>
      <h3 style={{ margin: 0 }}>{board.title}</h3>
      {chosen.map((text) => <span key={text}>{text}</span>)}
    </header>
  );
}

async function start(): Promise<void> {
  register();
  await initPluginTranslations('context-ledger');
  const signal = new AbortController().signal;
  const found = await offers(board, {}, { range, scope: { variables: new Map(), built: {} }, signal });
  const question = { range, scrape, signal, scope: { variables: map(found), built: {} } };
  const root = createRoot(document.getElementById('root')!);
  const styles = <GlobalStyles />;
  // Text is measured when it is drawn first, so the font is to be there before.
  flushSync(() => root.render(<ThemeContext.Provider value={theme}>{styles}</ThemeContext.Provider>));
  const fonts = ['400 14px Inter', '500 14px Inter'].map((font) => document.fonts.load(font));
  if ((await Promise.all(fonts)).some((faces) => faces.length === 0)) throw new Error('a font is missing');
  const bottom = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h));
  root.render(
    <ThemeContext.Provider value={theme}>
      {styles}
      <div style={{ padding: EDGE }}>
        <Head found={found} />
        <main style={{ position: 'relative', height: bottom * (ROW + GAP) }}>
          {panels.map((panel) => <Placed key={panel.id} panel={panel} question={question} />)}
        </main>
      </div>
      <PortalContainer />
    </ThemeContext.Provider>,
  );
}

window.told = [];
start().catch((reason: unknown) => (window.failed = String(reason)));
