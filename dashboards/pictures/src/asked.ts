/** Owns what the page is told to draw before it starts, and what it says of it when it is done. */

import type { Board } from '../../viewer/src/board';
import type { Range } from '../../viewer/src/clock';

export interface Asked {
  board: Board;
  theme: 'dark' | 'light';
  range: Range;
  /** Seconds between two samples. */
  scrape: number;
}

/** `drawn`: lines, numbers, bars or rows that have a value. */
export interface Told {
  title: string;
  kind: string;
  state: 'ok' | 'empty' | 'error';
  drawn: number;
  error: string;
}

declare global {
  interface Window {
    asked: Asked;
    /** One for each panel, in any order; the picture is ready when all are there. */
    told: Told[];
    failed?: string;
  }
}
