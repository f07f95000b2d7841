/** Owns the page as a whole: what its address says is asked for and shown, and what the reader does becomes an address. */

import type { About, Board } from './board';
import { chooser } from './choosers';
import { ago, range, relative, seconds, written, type Range } from './clock';
import { h } from './dom';
import type { Canvas } from './draw/canvas';
import { chosenQuery, type Scope } from './interpolation';
import { help, listen, type Shortcut } from './keys';
import { kinds, marks, unshown, type Mark } from './marks';
import type { Frame, Outcome } from './panel';
import { picker } from './picker';
import { sections, type Section } from './shelf';
import { fromGrafana, read, REFRESHES, search, type State } from './state';
import { dark, dress, theme, turn } from './theme';
import { map, offers, unasked, type Offer } from './variables';

const RETRY = 5000;
const MOST_LISTED = 200;

export class Page {
  private state: State;
  private board!: Board;
  private sections: Section[] = [];
  private offers: Offer[] = [];
  private off = new Set<string>();
  private stop = new AbortController();
  private timer = 0;
  private readonly tools = h('div', { class: 'tools', role: 'group', 'aria-label': 'What is shown' });
  private readonly nav = h('nav', { 'aria-label': 'Boards' });
  private readonly title = h('h1', { tabindex: -1, id: 'title' });
  private readonly banner = h('div', { class: 'banner', role: 'alert', hidden: true });
  private readonly main = h('main', { id: 'panels', tabindex: -1 });
  private readonly events = h('section', { class: 'events', 'aria-labelledby': 'events-title' });
  private readonly status = h('p', { class: 'status', id: 'status' });
  private readonly spoken = h('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
  private readonly watch = new ResizeObserver((entries) => this.resized(entries));
  private readonly shortcuts: Shortcut[] = this.keyboard();
  private readonly help = help(this.shortcuts);

  constructor(private readonly about: About) {
    this.state = read(location.search, about.boards);
    const top = h('header', { class: 'top' }, h('div', { class: 'line' }, this.title, this.status), this.nav, this.tools, this.banner);
    const skip = h('a', { class: 'skip', href: '#panels', on: { click: (event: Event) => (event.preventDefault(), this.main.focus()) } }, 'Skip to the panels');
    document.body.append(skip, top, this.main, this.events, this.spoken, this.help);
    listen(this.shortcuts);
    dress(() => this.redraw());
    addEventListener('popstate', () => this.show(read(location.search, about.boards)));
    document.addEventListener('visibilitychange', () => document.hidden || this.schedule());
    this.show(this.state);
  }

  /** Shows what an address says; the board is built anew only if it is another one. */
  private show(state: State): void {
    const board = this.about.boards.find(({ uid }) => uid === state.board) ?? this.about.boards[0]!;
    this.state = state;
    if (board !== this.board) this.build(board);
    this.navigate();
    void this.load(false);
  }

  /** Goes where the reader wants to. */
  private go(change: Partial<State>): void {
    const state = { ...this.state, ...change };
    history.pushState(null, '', search(state));
    this.show(state);
    this.say(`${this.board.title}.`);
  }

  private build(board: Board): void {
    this.board = board;
    this.sections.forEach(({ frames }) => frames.forEach((frame) => frame.remove()));
    this.sections = sections(board, this.watch, (section) => void this.open(section));
    this.main.replaceChildren(...(board.description ? [h('p', { class: 'lead' }, board.description)] : []), ...this.sections.map(({ element }) => element));
    this.offers = unasked(board, this.state.variables);
    this.title.textContent = board.title;
    document.title = `${board.title} – context-ledger`;
    this.off = new Set(unshown(board));
  }

  /** Asks for everything again. `told`: the reader asked for it, and is told when it is done; `background`: nobody did,
   *  and a menu that is open stays as it is. */
  private async load(told: boolean, background = false): Promise<void> {
    this.stop.abort();
    this.stop = new AbortController();
    clearTimeout(this.timer);
    const { signal } = this.stop;
    const span = range(this.state.from, this.state.to, Date.now() / 1000, this.state.zone);
    if (!span) return this.warn('The address of this page has a time that cannot be read. Choose another one.');
    this.status.textContent = 'Loading …';
    if (!background) this.tool();
    const trouble = await this.chosen(span, signal);
    if (signal.aborted) return;
    if (!background || !this.tools.querySelector('details[open]')) this.tool();
    const found = await this.marks(span, signal);
    const outcomes = await this.draw(this.open_(), span, found, signal);
    if (!signal.aborted) this.done(outcomes, found, trouble || this.open_().map((frame) => frame.trouble).find(Boolean) || '', told);
  }

  /** The values of the variables; Prometheus' refusal where it gives none. */
  private async chosen(span: Range, signal: AbortSignal): Promise<string> {
    try {
      this.offers = await offers(this.board, this.state.variables, { range: span, scope: this.scope(), signal });
      return '';
    } catch (error) {
      if (!signal.aborted) this.offers = unasked(this.board, this.state.variables);
      return error instanceof Error ? error.message : String(error);
    }
  }

  private async marks(span: Range, signal: AbortSignal): Promise<Mark[]> {
    const asking = { range: span, scope: this.scope(), scrape: this.about.scrapeInterval, signal };
    return marks(this.board, this.off, asking).catch(() => []);
  }

  private draw(frames: Frame[], span: Range, found: Mark[], signal: AbortSignal): Promise<Outcome[]> {
    const scope = this.scope();
    const question = { range: span, scope, scrape: this.about.scrapeInterval, signal };
    return Promise.all(frames.map((frame) => frame.load(question, this.canvas(scope, found))));
  }

  private canvas(scope: Scope, found: Mark[]): Omit<Canvas, 'panel' | 'only' | 'redraw'> {
    const agents = this.offers.find(({ variable }) => variable.multi)?.options ?? [];
    return {
      theme: theme(),
      zone: this.state.zone,
      scope,
      marks: found,
      place: (name, at) => (agents.includes(name) ? agents.indexOf(name) : at),
      lead: (url) => (/^https?:\/\//.test(url) ? url : fromGrafana(url, this.about.boards, this.state)),
      zoom: ({ from, to }) => this.go({ from: String(from * 1000), to: String(to * 1000) }),
      say: (text) => this.say(text),
    };
  }

  private done(outcomes: Outcome[], found: Mark[], trouble: string, told: boolean): void {
    const wrong = outcomes.filter((outcome) => outcome === 'error').length;
    const empty = outcomes.length > 0 && outcomes.every((outcome) => outcome === 'empty');
    const at = written(Date.now() / 1000, this.state.zone).slice(11);
    const text = `Updated ${at}${this.state.zone === 'utc' ? ' UTC' : ''}${wrong ? `, ${wrong} of ${outcomes.length} panels with errors` : ''}`;
    if (told || (wrong > 0) !== this.status.classList.contains('wrong')) this.say(text);
    this.status.textContent = text;
    this.status.classList.toggle('wrong', wrong > 0);
    this.warn(trouble || (empty ? 'No panel has anything in this range. Choose a longer one, or look whether the program or its collector sends metrics to this Prometheus.' : ''));
    this.happened(found);
    document.documentElement.dataset['ready'] = String(Number(document.documentElement.dataset['ready'] ?? 0) + 1);
    this.schedule(trouble);
  }

  private schedule(trouble = ''): void {
    clearTimeout(this.timer);
    const every = (seconds(this.state.refresh) ?? 0) * 1000;
    const wait = trouble ? Math.max(every, RETRY) * Number(every > 0) : every;
    if (wait > 0 && (relative(this.state.to) || trouble)) this.timer = window.setTimeout(() => (document.hidden ? undefined : void this.load(false, true)), wait);
  }

  private async open(section: Section): Promise<void> {
    const span = range(this.state.from, this.state.to, Date.now() / 1000, this.state.zone);
    if (span) await this.draw(section.frames, span, await this.marks(span, this.stop.signal), this.stop.signal);
  }

  private open_(): Frame[] {
    return this.sections.filter(({ open }) => open).flatMap(({ frames }) => frames);
  }

  private scope(): Scope {
    const variables = map(this.offers);
    const all = [...variables].map(([name, chosen]) => chosenQuery(name, chosen)).join('&');
    const time = `from=${encodeURIComponent(this.state.from)}&to=${encodeURIComponent(this.state.to)}`;
    return { variables, built: { __url_time_range: time, __all_variables: all } };
  }

  private navigate(): void {
    const common = this.about.boards.length > 1 ? prefix(this.about.boards.map(({ title }) => title)) : 0;
    const items = this.about.boards.map((board, at) => {
      const target = { ...this.state, board: board.uid, variables: this.state.variables };
      const current = board === this.board ? 'page' : null;
      const click = (event: MouseEvent): void => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.go({ board: board.uid });
        this.title.focus();
      };
      return h('li', {}, h('a', { href: search(target), 'aria-current': current, title: at < 9 ? `Board ${at + 1} (${at + 1})` : null, on: { click } }, board.title.slice(common)));
    });
    this.nav.replaceChildren(h('ul', {}, ...items));
  }

  /** The tools, anew; focus and open menus stay. */
  private tool(): void {
    const focused = this.tools.contains(document.activeElement) ? document.activeElement : null;
    const key = focused?.getAttribute('data-key') ?? focused?.id ?? '';
    const open = this.tools.querySelector('details[open]')?.getAttribute('data-variable');
    if (focused?.closest('form') || focused?.matches('input:not([type=checkbox])')) return;
    const times = picker(this.state, ({ from, to, zone }) => this.go({ from, to, zone }));
    this.tools.replaceChildren(...this.offers.filter(({ shown }) => shown).map((offer) => this.chooser(offer)), this.switches() ?? '', h('div', { class: 'right' }, times, ...this.buttons()));
    if (open) this.tools.querySelector(`details[data-variable="${CSS.escape(open)}"]`)?.setAttribute('open', '');
    if (key) this.tools.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"], #${CSS.escape(key)}`)?.focus();
  }

  private chooser(offer: Offer): HTMLElement {
    return chooser(offer, (values) => this.go({ variables: { ...this.state.variables, [offer.variable.name]: values } }));
  }

  private switches(): HTMLElement | null {
    const shown = kinds(this.board);
    if (shown.length === 0) return null;
    const boxes = shown.map(({ name }) => {
      const change = (): void => {
        if (!this.off.delete(name)) this.off.add(name);
        void this.load(true);
      };
      return h('label', {}, h('input', { type: 'checkbox', checked: !this.off.has(name), 'data-key': `mark ${name}`, on: { change } }), name);
    });
    return h('details', { class: 'menu', 'data-variable': ' marks' }, h('summary', { 'data-key': 'marks' }, 'Marks'), h('fieldset', { class: 'drop' }, h('legend', { class: 'unseen' }, 'Marks on graphs'), ...boxes));
  }

  private buttons(): HTMLElement[] {
    const every = this.state.refresh;
    const known = REFRESHES.includes(every) ? REFRESHES : [...REFRESHES, every];
    const options = known.map((value) => h('option', { value, selected: value === every }, value || 'Off'));
    const change = (event: Event): void => this.go({ refresh: (event.target as HTMLSelectElement).value });
    const button = (text: string, name: string, click: () => void): HTMLElement => h('button', { type: 'button', title: name, 'aria-label': name, 'data-key': name, on: { click } }, text);
    return [
      button('−', 'Zoom out (z)', () => this.zoom()),
      button('↻', 'Refresh (r)', () => void this.load(true)),
      h('select', { 'aria-label': 'Refresh every', title: 'Refresh every', 'data-key': 'every', on: { change } }, ...options),
      button('◐', dark() ? 'Light theme (d)' : 'Dark theme (d)', () => this.dye()),
      button('?', 'Keyboard (?)', () => this.help.showModal()),
    ];
  }

  private keyboard(): Shortcut[] {
    return [
      { keys: ['r'], shown: 'r', does: 'Refresh', act: () => void this.load(true) },
      { keys: ['t'], shown: 't', does: 'Choose a time', act: () => this.menu() },
      { keys: ['z'], shown: 'z', does: 'Twice the time', act: () => this.zoom() },
      { keys: ['[', ']'], shown: '[ ]', does: 'Half a range earlier, later', act: (key) => this.shift(key === '[' ? -0.5 : 0.5) },
      { keys: ['n'], shown: 'n', does: 'Now: the board\'s own time', act: () => this.go({ from: this.board.time?.from ?? 'now-6h', to: 'now' }) },
      { keys: [...'123456789'], shown: '1 – 9', does: 'Another board', act: (key) => this.nth(Number(key)) },
      { keys: ['d'], shown: 'd', does: 'Dark or light', act: () => this.dye() },
      { keys: ['?'], shown: '?', does: 'This list', act: () => this.help.showModal() },
      { keys: [], shown: 'Esc', does: 'Close a menu', act: () => undefined },
    ];
  }

  private menu(): void {
    const summary = this.tools.querySelector<HTMLElement>('#time');
    (summary?.parentElement as HTMLDetailsElement).open = true;
    summary?.focus();
  }

  private nth(at: number): void {
    const board = this.about.boards[at - 1];
    if (board) this.go({ board: board.uid });
  }

  private zoom(): void {
    this.moved((from, to) => [from - (to - from) / 2, to + (to - from) / 2]);
  }

  private shift(by: number): void {
    this.moved((from, to) => [from + (to - from) * by, to + (to - from) * by]);
  }

  private moved(change: (from: number, to: number) => [number, number]): void {
    const span = range(this.state.from, this.state.to, Date.now() / 1000, this.state.zone);
    if (!span) return;
    const now = Math.round(Date.now() / 1000);
    const [from, to] = change(Math.round(span.from), Math.round(span.to)).map(Math.round) as [number, number];
    // Nothing is known of the future; a range that ended now still does.
    if (to < now || !relative(this.state.to)) this.go({ from: String((from - Math.max(0, to - now)) * 1000), to: String(Math.min(to, now) * 1000) });
    else this.go({ from: ago(to - from), to: 'now' });
  }

  private dye(): void {
    turn();
    this.redraw();
  }

  private redraw(): void {
    this.tool();
    for (const frame of this.open_()) frame.draw({ theme: theme() });
  }

  private resized(entries: ResizeObserverEntry[]): void {
    const changed = new Set(entries.map(({ target }) => target.parentElement));
    requestAnimationFrame(() => this.open_().filter(({ element }) => changed.has(element)).forEach((frame) => frame.resized()));
  }

  private happened(found: Mark[]): void {
    const heading = h('h2', { id: 'events-title' }, 'Marks in this range');
    const listed = found.slice(-MOST_LISTED).reverse();
    const rows = listed.map((mark) => h('tr', {}, h('td', {}, written(mark.from, this.state.zone)), h('td', {}, mark.kind), h('td', {}, mark.title), h('td', {}, mark.text)));
    const heads = h('tr', {}, ...['From', 'Kind', 'What', 'Of'].map((text) => h('th', { scope: 'col' }, text)));
    const table = h('table', { class: 'grid' }, h('thead', {}, heads), h('tbody', {}, ...rows));
    const count = found.length > MOST_LISTED ? `the last ${MOST_LISTED} of ${found.length}` : String(found.length);
    this.events.replaceChildren(...(kinds(this.board).length ? [heading, found.length ? h('details', {}, h('summary', {}, `List (${count})`), table) : h('p', { class: 'note' }, 'None.')] : []));
  }

  private warn(text: string): void {
    if (this.banner.textContent === text) return;
    this.banner.hidden = text === '';
    this.banner.textContent = text;
  }

  private say(text: string): void {
    this.spoken.textContent = this.spoken.textContent === text ? `${text} ` : text;
  }
}

/** The length of what all titles begin with, up to a slash. */
function prefix(titles: string[]): number {
  const start = titles[0]?.lastIndexOf('/ ') ?? -1;
  const common = start < 0 ? '' : (titles[0] ?? '').slice(0, start + 2);
  return titles.every((title) => title.startsWith(common)) ? common.length : 0;
}
