/** Owns the options of fields that Grafana's application registers when it starts: what a board of ours may set, and what
 *  a kind of panel has where a board says nothing. */

import {
  FieldConfigOptionsRegistry,
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
  type FieldConfigPropertyItem,
} from '@grafana/data';

type Process = FieldConfigPropertyItem['process'];

const STANDARD: Record<string, Process> = {
  unit: unitOverrideProcessor,
  decimals: numberOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  displayName: displayNameOverrideProcessor,
  noValue: identityOverrideProcessor,
  color: identityOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  links: dataLinksOverrideProcessor,
  filterable: identityOverrideProcessor,
};

/** What a field of a panel has where a board says nothing, as far as Grafana's schema and habits tell. */
export const CUSTOM: Record<string, Record<string, unknown>> = {
  timeseries: {
    drawStyle: 'line',
    lineInterpolation: 'linear',
    lineWidth: 1,
    lineStyle: { fill: 'solid' },
    fillOpacity: 0,
    gradientMode: 'none',
    barAlignment: 0,
    spanNulls: false,
    insertNulls: false,
    showPoints: 'auto',
    pointSize: 5,
    stacking: { mode: 'none', group: 'A' },
    axisPlacement: 'auto',
    axisLabel: '',
    axisColorMode: 'text',
    axisBorderShow: false,
    axisCenteredZero: false,
    scaleDistribution: { type: 'linear' },
    hideFrom: { tooltip: false, viz: false, legend: false },
    thresholdsStyle: { mode: 'off' },
  },
  table: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false, width: undefined, minWidth: undefined },
};

const items = [
  ...Object.entries(STANDARD).map(([id, process]) => item(id, id, process)),
  ...[...new Set(Object.values(CUSTOM).flatMap(Object.keys))].map((name) => ({
    ...item(`custom.${name}`, name, identityOverrideProcessor),
    isCustom: true,
  })),
];

export const registry = new FieldConfigOptionsRegistry(() => items);

/** Once, before anything is drawn. */
export function register(): void {
  standardEditorsRegistry.setInit(() => []);
  standardFieldConfigEditorRegistry.setInit(() => items);
  const known = new Map(Object.values(standardTransformers).map((one) => [one.id, one]));
  standardTransformersRegistry.setInit(() =>
    [...known.values()].map((one) => ({
      id: one.id,
      name: one.name,
      transformation: () => Promise.resolve(one),
      editor: nothing,
      imageDark: '',
      imageLight: '',
    })),
  );
}

function item(id: string, path: string, process: Process): FieldConfigPropertyItem {
  return { id, path, name: id, process, shouldApply: () => true, editor: nothing, override: nothing, settings: {} };
}

const nothing = () => null;
