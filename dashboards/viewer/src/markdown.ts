/** Owns the little Markdown that boards use: headings, lists, paragraphs, emphasis, code and links. No HTML. */

import { h } from './dom';

const INLINE = /\*\*(.+?)\*\*|\*(.+?)\*|`([^`]+)`|\[([^\]]+)\]\(([^)\s]+)\)/g;
const SAFE = /^(https?:\/\/|#|\?)/;

export function markdown(text: string): HTMLElement {
  const whole = h('div', { class: 'prose' });
  for (const block of text.split(/\n\s*\n/)) if (block.trim()) whole.append(paragraph(block.trim()));
  return whole;
}

function paragraph(block: string): HTMLElement {
  const heading = /^(#{1,6})\s+(.*)$/.exec(block);
  if (heading) return h('h4', {}, ...inline(heading[2] ?? ''));
  const lines = block.split('\n');
  if (lines.every((line) => /^\s*([-*]|\d+\.)\s/.test(line))) {
    const items = lines.map((line) => h('li', {}, ...inline(line.replace(/^\s*([-*]|\d+\.)\s+/, ''))));
    return h(/^\s*\d/.test(block) ? 'ol' : 'ul', {}, ...items);
  }
  return h('p', {}, ...inline(lines.join(' ')));
}

function inline(text: string): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(end, found.index), marked(found));
    end = found.index + found[0].length;
  }
  return [...parts, text.slice(end)];
}

function marked([whole, strong, emphasis, code, label, target]: RegExpMatchArray): Node | string {
  if (strong !== undefined) return h('strong', {}, strong);
  if (emphasis !== undefined) return h('em', {}, emphasis);
  if (code !== undefined) return h('code', {}, code);
  if (label !== undefined && target && SAFE.test(target)) return outward(target, label);
  return whole;
}

/** A link; one that leads away tells nobody where it was followed. */
export function outward(target: string, label: string): HTMLAnchorElement {
  const away = /^https?:/.test(target);
  return h('a', { href: target, ...(away ? { target: '_blank', rel: 'noopener noreferrer' } : {}) }, label);
}
