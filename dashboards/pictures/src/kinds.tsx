/** Owns how each kind of panel is drawn by Grafana's components, as its own panels call them. */

import {
  VizOrientation,
  getDisplayValueAlignmentFactors,
  getFieldDisplayValues,
  renderMarkdown,
  type DisplayValueAlignmentFactors,
  type FieldDisplay,
  type GrafanaTheme2,
  type TimeRange,
} from '@grafana/data';
import type { BarGaugeDisplayMode, BarGaugeNamePlacement, BarGaugeValueMode, TableCellHeight, VizLegendOptions } from '@grafana/schema';
import {
  BarGauge,
  BigValue,
  TimeSeries,
  VizRepeater,
  type BigValueColorMode,
  type BigValueGraphMode,
  type BigValueJustifyMode,
  type BigValueTextMode,
  type TableSortByFieldState,
  type VizRepeaterRenderValueProps,
} from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import type { ReactElement } from 'react';
import type { Panel } from '../../viewer/src/board';
import type { Drawing } from './drawing';

export interface Canvas extends Drawing {
  panel: Panel;
  width: number;
  height: number;
  range: TimeRange;
  theme: GrafanaTheme2;
}

type Value = VizRepeaterRenderValueProps<FieldDisplay, DisplayValueAlignmentFactors>;

/** Kinds whose panel goes to the edge. */
export const EDGE = new Set(['stat', 'table']);

export const KINDS: Record<string, (canvas: Canvas) => ReactElement> = {
  timeseries: Graph,
  stat: Stat,
  bargauge: Bars,
  table: Table,
  text: Words,
};

/** What a panel says that has nothing to draw. */
export function Nothing({ panel, width, height, theme }: Omit<Canvas, keyof Drawing | 'range'>) {
  const said = String(panel.fieldConfig?.defaults?.['noValue'] ?? 'No data');
  return <div style={{ width, height, display: 'grid', placeItems: 'center', color: theme.colors.text.secondary }}>{said}</div>;
}

function Graph({ panel, frames, width, height, range }: Canvas) {
  const legend = panel.options?.['legend'] as VizLegendOptions;
  return <TimeSeries frames={frames} timeRange={range} timeZone="utc" width={width} height={height} legend={legend} options={panel.options} />;
}

function Stat(canvas: Canvas) {
  const options = canvas.panel.options ?? {};
  const one = ({ value, width, height, count, alignmentFactors }: Value) => (
    <BigValue
      value={value.display}
      sparkline={value.sparkline}
      count={count}
      colorMode={options['colorMode'] as BigValueColorMode}
      graphMode={options['graphMode'] as BigValueGraphMode}
      justifyMode={options['justifyMode'] as BigValueJustifyMode}
      textMode={options['textMode'] as BigValueTextMode}
      alignmentFactors={alignmentFactors}
      width={width}
      height={height}
      theme={canvas.theme}
    />
  );
  return <Repeated {...canvas} one={one} />;
}

function Bars(canvas: Canvas) {
  const options = canvas.panel.options ?? {};
  const one = ({ value, width, height, orientation, alignmentFactors }: Value) => (
    <BarGauge
      value={value.display}
      field={value.field}
      {...(value.view && { display: value.view.getFieldDisplayProcessor(value.colIndex ?? 0) })}
      orientation={orientation}
      displayMode={options['displayMode'] as BarGaugeDisplayMode}
      valueDisplayMode={options['valueMode'] as BarGaugeValueMode}
      namePlacement={options['namePlacement'] as BarGaugeNamePlacement}
      showUnfilled={Boolean(options['showUnfilled'])}
      alignmentFactors={alignmentFactors}
      itemSpacing={10}
      lcdCellWidth={12}
      width={width}
      height={height}
      theme={canvas.theme}
    />
  );
  return <Repeated {...canvas} one={one} />;
}

function Repeated({ panel, frames, config, replace, width, height, theme, one }: Canvas & { one: (value: Value) => ReactElement }) {
  const options = panel.options ?? {};
  const bars = panel.type === 'bargauge';
  const values = () =>
    getFieldDisplayValues({
      data: frames,
      fieldConfig: config,
      reduceOptions: { calcs: ['lastNotNull'], ...(options['reduceOptions'] as object | undefined) },
      replaceVariables: replace,
      sparkline: options['graphMode'] !== undefined && options['graphMode'] !== 'none',
      theme,
      timeZone: 'utc',
    });
  return (
    <VizRepeater
      source={frames}
      getValues={values}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={one as never}
      renderCounter={0}
      orientation={(options['orientation'] as VizOrientation | undefined) ?? VizOrientation.Auto}
      autoGrid={!bars}
      itemSpacing={10}
      {...(bars && { minVizWidth: 8, minVizHeight: 16, maxVizHeight: 300 })}
      width={width}
      height={height}
    />
  );
}

function Table({ panel, frames, config, width, height, range }: Canvas) {
  const options = panel.options ?? {};
  return (
    <TableNG
      data={frames[0]!}
      width={width}
      height={height}
      timeRange={range}
      fieldConfig={config}
      sortBy={options['sortBy'] as TableSortByFieldState[]}
      cellHeight={options['cellHeight'] as TableCellHeight}
      noHeader={options['showHeader'] === false}
      showTypeIcons={Boolean(options['showTypeIcons'])}
      structureRev={1}
      getActions={() => []}
    />
  );
}

function Words({ panel, replace }: Canvas) {
  const text = renderMarkdown(replace(String(panel.options?.['content'] ?? '')));
  return <div className="markdown-html" dangerouslySetInnerHTML={{ __html: text }} />;
}
