/** Owns what every kind of panel is given to draw with. */

import type { Panel } from '../board';
import type { Range, Zone } from '../clock';
import type { Theme } from '../colours';
import type { Scope } from '../interpolation';
import type { Mark } from '../marks';
import type { Found } from '../series';

export interface Canvas {
  panel: Panel;
  theme: Theme;
  zone: Zone;
  scope: Scope;
  marks: Mark[];
  /** The series that are shown alone; none: all are. Kept from one drawing to the next. */
  only: Set<string>;
  /** The place of a series in the palette, so that an agent has one colour on the whole board. */
  place(name: string, at: number): number;
  /** Where a board's link leads on this page; null where it leads nowhere. */
  lead(url: string): string | null;
  zoom(range: Range): void;
  say(text: string): void;
  redraw(): void;
}

/** Draws what was found into an element of the panel's size. */
export type Draw = (body: HTMLElement, found: Found, canvas: Canvas) => void;
