/** Owns a panel on the page: its frame, and whether it loads, shows, has nothing to show or went wrong. */

import type { Panel } from './board';
import { h, hidden } from './dom';
import type { Canvas, Draw } from './draw/canvas';
import { KINDS } from './draw/kinds';
import { behind } from './draw/table';
import { look } from './fields';
import { markdown } from './markdown';
import { Refused } from './prometheus';
import { found, type Found, type Question } from './series';

export type Outcome = 'ok' | 'empty' | 'error' | 'stopped';

/** A graph is drawn for at least so many pixels. */
const LEAST_PIXELS = 100;
/** What the whole page suffers from is told once, above it: a panel has just no answer. */
const OF_ALL = new Set(['unreachable', 'unauthorized', 'redirect', 'no_prometheus', 'gone']);

export class Frame {
  readonly element: HTMLElement;
  /** What the whole page suffers from, if that is why there is nothing; else nothing. */
  trouble = '';
  private readonly body = h('div', { class: 'body' });
  private readonly only = new Set<string>();
  private last: Found | undefined;
  private canvas: Canvas | undefined;
  private asTable = false;
  private size = '';

  constructor(
    readonly panel: Panel,
    private readonly watch: ResizeObserver,
  ) {
    const title = panel.title ? h('h3', { id: `title-${panel.id}` }, panel.title) : null;
    const named = panel.title ? { 'aria-labelledby': `title-${panel.id}` } : { 'aria-label': 'Text' };
    this.element = h('section', { class: `panel ${panel.type}`, 'data-panel': panel.id, 'data-state': 'loading', 'aria-busy': 'true', ...named });
    this.element.append(h('header', {}, title, this.about(), this.turn()), this.body);
    this.body.append(h('p', { class: 'note' }, 'Loading …'));
    this.watch.observe(this.body);
  }

  /** Asks and draws. What is there stays until the answer is. */
  async load(question: Omit<Question, 'pixels'>, canvas: Omit<Canvas, 'panel' | 'only' | 'redraw'>): Promise<Outcome> {
    this.canvas = { ...canvas, panel: this.panel, only: this.only, redraw: () => this.draw() };
    this.element.setAttribute('aria-busy', 'true');
    this.trouble = '';
    try {
      this.last = await found(this.panel, { ...question, pixels: Math.max(LEAST_PIXELS, this.body.clientWidth) });
      this.draw();
    } catch (error) {
      if (question.signal.aborted) return 'stopped';
      this.last = undefined;
      if (error instanceof Refused && OF_ALL.has(error.kind)) this.trouble = error.message;
      this.note('error', this.trouble ? 'No answer' : error instanceof Error ? error.message : String(error));
    }
    this.element.setAttribute('aria-busy', 'false');
    return this.element.dataset['state'] as Outcome;
  }

  /** Draws again what was found, for another theme or size. */
  draw(canvas?: Partial<Canvas>): void {
    if (!this.canvas || !this.last) return;
    this.canvas = { ...this.canvas, ...canvas };
    const { last, canvas: on } = this;
    const nothing = last.series.length === 0 && this.panel.type !== 'text';
    if (nothing) return this.note('empty', look(this.panel, []).empty);
    this.kept(() => {
      this.body.replaceChildren();
      try {
        if (this.asTable) this.body.append(behind(last, on));
        else drawing(this.panel)(this.body, last, on);
        this.element.dataset['state'] = 'ok';
      } catch (error) {
        this.note('error', error instanceof Error ? error.message : String(error));
      }
    });
  }

  /** The width or height changed: what is drawn for a size is drawn again. */
  resized(): void {
    const size = `${this.body.clientWidth} ${this.body.clientHeight}`;
    if (size === this.size) return;
    this.size = size;
    if (this.panel.type === 'timeseries' && this.element.dataset['state'] === 'ok') this.draw();
  }

  remove(): void {
    this.watch.unobserve(this.body);
    this.element.remove();
  }

  private note(state: Outcome, text: string): void {
    this.element.dataset['state'] = state;
    this.body.replaceChildren(h('p', { class: this.trouble ? 'note' : `note ${state}` }, state === 'error' ? hidden('Error: ') : null, text));
  }

  /** Draws without taking the reader's place away: focus and scrolling stay where they are. */
  private kept(draw: () => void): void {
    const focused = this.body.contains(document.activeElement) ? document.activeElement?.getAttribute('data-key') : null;
    const scrolled = this.body.querySelector('.scroller, .legend')?.scrollTop ?? 0;
    draw();
    const scroller = this.body.querySelector('.scroller, .legend');
    if (scroller) scroller.scrollTop = scrolled;
    if (focused) this.body.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  private about(): HTMLElement | null {
    if (!this.panel.description) return null;
    const note = h('div', { class: 'about', id: `about-${this.panel.id}`, popover: 'auto' }, markdown(this.panel.description));
    const name = `About ${this.panel.title ?? 'this panel'}`;
    const button = h('button', { type: 'button', class: 'icon', 'aria-label': name, title: 'What this shows', popovertarget: note.id }, 'i');
    note.addEventListener('beforetoggle', () => beside(note, button));
    return h('span', {}, button, note);
  }

  private turn(): HTMLElement | null {
    if (this.panel.type !== 'timeseries') return null;
    const name = `Values of ${this.panel.title ?? 'this graph'} as a table`;
    const button = h('button', { type: 'button', class: 'icon', 'aria-label': name, title: 'As a table', 'aria-pressed': 'false' }, '☰');
    button.addEventListener('click', () => {
      this.asTable = !this.asTable;
      button.setAttribute('aria-pressed', String(this.asTable));
      this.draw();
    });
    return button;
  }
}

function drawing({ type }: Panel): Draw {
  const draw = KINDS[type];
  if (!draw) throw new Error(`This page does not draw panels of the kind ${type}.`);
  return draw;
}

function beside(note: HTMLElement, button: HTMLElement): void {
  const { left, bottom } = button.getBoundingClientRect();
  note.style.setProperty('left', `${Math.max(8, Math.min(left, innerWidth - 380))}px`);
  note.style.setProperty('top', `${Math.min(bottom + 6, innerHeight - 120)}px`);
}
