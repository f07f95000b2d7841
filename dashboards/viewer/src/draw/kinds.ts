/** Owns which kinds of panel the page draws, by Grafana's names. */

import { bars } from './bars';
import type { Draw } from './canvas';
import { graph } from './graph';
import { numbers } from './numbers';
import { table } from './table';
import { words } from './words';

export const KINDS: Record<string, Draw> = { stat: numbers, timeseries: graph, bargauge: bars, table, text: words };
