/** Owns how elements are made. What comes from outside becomes text, never markup. */

export type Child = Node | string | null | undefined | false;
type Value = string | number | boolean | null | undefined;
export interface Made {
  [name: string]: Value | Record<string, Value> | Record<string, (event: never) => void>;
  on?: Record<string, (event: never) => void>;
  styles?: Record<string, Value>;
}

const SVG = 'http://www.w3.org/2000/svg';

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  made: Made = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  return dressed(document.createElement(tag), made, children);
}

export function svg(tag: string, made: Made = {}, ...children: Child[]): SVGElement {
  return dressed(document.createElementNS(SVG, tag) as SVGElement, made, children);
}

/** The page's own colour, from its style sheet. */
export function shade(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function hidden(text: string): HTMLElement {
  return h('span', { class: 'unseen' }, text);
}

/** A region that scrolls must be reached by keyboard, too. */
export function scroller(name: string, ...children: Child[]): HTMLElement {
  return h('div', { class: 'scroller', tabindex: 0, role: 'group', 'aria-label': name }, ...children);
}

function dressed<Kind extends HTMLElement | SVGElement>(element: Kind, made: Made, children: Child[]): Kind {
  for (const [name, value] of Object.entries(made)) {
    if (name === 'on') for (const [kind, act] of Object.entries(made.on ?? {})) element.addEventListener(kind, act as EventListener);
    else if (name === 'styles') for (const [key, one] of Object.entries(made.styles ?? {})) element.style.setProperty(key, String(one));
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}
