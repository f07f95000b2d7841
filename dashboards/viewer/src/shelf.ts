/** Owns where panels stand: sections under headings that open and close, in each a grid of 24 columns. */

import type { Board, Panel } from './board';
import { h } from './dom';
import { Frame } from './panel';

export interface Section {
  element: HTMLElement;
  frames: Frame[];
  open: boolean;
}

interface Row {
  panel: Panel | null;
  panels: Panel[];
}

/** The sections of a board. `opened` is called when one that was closed is opened. */
export function sections(board: Board, watch: ResizeObserver, opened: (section: Section) => void): Section[] {
  return rows(board.panels).map((row) => section(row, watch, opened));
}

/** Panels below a row belong to it; those of a closed row are in it. */
function rows(panels: Panel[]): Row[] {
  const found: Row[] = [{ panel: null, panels: [] }];
  for (const panel of [...panels].sort(above)) {
    if (panel.type === 'row') found.push({ panel, panels: [...(panel.panels ?? [])] });
    else found.at(-1)?.panels.push(panel);
  }
  return found.filter((row) => row.panel || row.panels.length > 0);
}

const above = (one: Panel, other: Panel): number => one.gridPos.y - other.gridPos.y || one.gridPos.x - other.gridPos.x;

function section({ panel, panels }: Row, watch: ResizeObserver, opened: (section: Section) => void): Section {
  const top = Math.min(...panels.map(({ gridPos }) => gridPos.y));
  const frames = [...panels].sort(above).map((one) => placed(new Frame(one, watch), top));
  const grid = h('div', { class: 'cells', id: `row-${panel?.id ?? 0}` }, ...frames.map(({ element }) => element));
  const made: Section = { element: h('div', { class: 'row' }), frames, open: !panel?.collapsed };
  if (panel) made.element.append(heading(panel, grid, made, opened));
  made.element.append(grid);
  grid.hidden = !made.open;
  return made;
}

function heading(panel: Panel, grid: HTMLElement, section: Section, opened: (section: Section) => void): HTMLElement {
  const button = h('button', { type: 'button', 'aria-expanded': String(section.open), 'aria-controls': grid.id }, panel.title ?? 'Panels');
  button.addEventListener('click', () => {
    section.open = !section.open;
    grid.hidden = !section.open;
    button.setAttribute('aria-expanded', String(section.open));
    if (section.open) opened(section);
  });
  return h('h2', {}, button);
}

/** On a narrow page a panel takes half of the width or more, so that pairs stay pairs. */
function placed(frame: Frame, top: number): Frame {
  const { x, y, w, h: height } = frame.panel.gridPos;
  const place = { '--x': x + 1, '--y': y - top + 1, '--w': w, '--h': height, '--narrow': w < 8 ? 12 : w };
  for (const [name, value] of Object.entries(place)) frame.element.style.setProperty(name, String(value));
  return frame;
}
