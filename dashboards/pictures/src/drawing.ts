/** Owns what a panel draws from: its answers, transformed, with the board's units, colours, mappings and links. */

import {
  FieldColorModeId,
  FieldType,
  ThresholdsMode,
  applyFieldOverrides,
  cacheFieldDisplayNames,
  transformDataFrame,
  type DataFrame,
  type FieldConfigSource,
  type GrafanaTheme2,
  type InterpolateFunction,
} from '@grafana/data';
import { firstValueFrom } from 'rxjs';
import type { Panel, Thresholds } from '../../viewer/src/board';
import { address, type Scope } from '../../viewer/src/interpolation';
import { found, type Question } from '../../viewer/src/series';
import { frames } from './frames';
import { CUSTOM, registry } from './options';

export interface Drawing {
  frames: DataFrame[];
  config: FieldConfigSource;
  replace: InterpolateFunction;
}

const USUAL: Thresholds = { mode: ThresholdsMode.Absolute, steps: [{ value: null, color: 'green' }, { value: 80, color: 'red' }] };

export async function drawing(panel: Panel, question: Question, theme: GrafanaTheme2): Promise<Drawing> {
  const answered = frames(panel, (await found(panel, question)).series);
  const replace = replacing(question.scope);
  const steps = (panel.transformations ?? []).map((one) => ({ ...one, options: one.options ?? {} }));
  const transformed = await firstValueFrom(transformDataFrame(steps, answered, { interpolate: replace }));
  const config = configured(panel);
  const styled = applyFieldOverrides({
    data: transformed,
    fieldConfig: config,
    fieldConfigRegistry: registry,
    replaceVariables: replace,
    theme,
    timeZone: 'utc',
  });
  cacheFieldDisplayNames(styled);
  return { frames: styled, config, replace };
}

/** Lines, numbers, bars or cells' rows that have a value. */
export function filled(panel: Panel, { frames }: Drawing): number {
  const numbers = frames.flatMap((frame) => frame.fields.filter((field) => field.type === FieldType.number));
  const known = numbers.filter((field) => field.values.some((value) => value !== null));
  return panel.type === 'table' && known.length > 0 ? (frames[0]?.length ?? 0) : known.length;
}

function configured(panel: Panel): FieldConfigSource {
  const { defaults = {}, overrides = [] } = panel.fieldConfig ?? {};
  const mode = panel.type === 'timeseries' ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds;
  return {
    defaults: {
      color: { mode },
      ...defaults,
      thresholds: unbounded((defaults['thresholds'] as Thresholds | undefined) ?? USUAL),
      custom: { ...CUSTOM[panel.type], ...(defaults['custom'] as object | undefined) },
    },
    overrides: overrides.map(({ matcher, properties }) => ({
      matcher,
      properties: properties.map((one) => (one.id === 'thresholds' ? { ...one, value: unbounded(one.value as Thresholds) } : one)),
    })),
  };
}

/** JSON has no minus infinity, from which the first step is. */
function unbounded({ mode, steps }: Thresholds) {
  return { mode: mode as ThresholdsMode, steps: steps.map((step) => ({ ...step, value: step.value ?? -Infinity })) };
}

function replacing(scope: Scope): InterpolateFunction {
  return (text, more) =>
    address(text ?? '', scope, (path) => {
      const value = path === '__value.raw' ? (more?.['__value']?.value as { raw?: unknown } | undefined)?.raw : undefined;
      return value === undefined ? undefined : String(value);
    });
}
