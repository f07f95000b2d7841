/** Draws text panels. */

import { scroller } from '../dom';
import { sentence } from '../interpolation';
import { markdown } from '../markdown';
import type { Draw } from './canvas';

export const words: Draw = (body, _found, canvas) => {
  const content = String((canvas.panel.options ?? {})['content'] ?? '');
  body.append(scroller(canvas.panel.title || 'Text', markdown(sentence(content, canvas.scope))));
};
