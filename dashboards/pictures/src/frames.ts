/** Owns how answers of Prometheus become Grafana's data frames, as its data source makes them. */

import { FieldType, createDataFrame, type DataFrame } from '@grafana/data';
import type { Panel, Target } from '../../viewer/src/board';
import type { Series } from '../../viewer/src/series';

/** A frame for each series, or for a table one for each query. */
export function frames(panel: Panel, series: Series[]): DataFrame[] {
  const targets = (panel.targets ?? []).filter((target) => !target.hide);
  return targets.flatMap((target) => {
    const own = series.filter((one) => one.ref === target.refId);
    return target.format === 'table' ? [table(target, own, targets.length > 1)] : own.map(line);
  });
}

function line(one: Series): DataFrame {
  const [first = 0, second = first] = one.times;
  return createDataFrame({
    refId: one.ref,
    fields: [
      { name: 'Time', type: FieldType.time, values: one.times.map(milliseconds), config: { interval: milliseconds(second - first) } },
      { name: 'Value', type: FieldType.number, values: one.values, labels: one.labels, config: { displayNameFromDS: one.name } },
    ],
  });
}

function table(target: Target, series: Series[], several: boolean): DataFrame {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.labels)))].sort();
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: series.map((one) => milliseconds(one.times.at(-1) ?? 0)) },
      ...labels.map((name) => ({ name, type: FieldType.string, values: series.map((one) => one.labels[name] ?? '') })),
      { name: several ? `Value #${target.refId}` : 'Value', type: FieldType.number, values: series.map((one) => one.values.at(-1) ?? null) },
    ],
  });
}

const milliseconds = (seconds: number): number => Math.round(seconds * 1000);
