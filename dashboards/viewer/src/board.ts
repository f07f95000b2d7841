/** Owns the shape of a board: the part of Grafana's classic dashboard JSON that the page draws. */

export interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Target {
  refId: string;
  expr?: string;
  legendFormat?: string;
  instant?: boolean;
  range?: boolean;
  format?: string;
  interval?: string;
  exemplar?: boolean;
  hide?: boolean;
}

export interface Step {
  value: number | null;
  color: string;
}

export interface Thresholds {
  mode?: string;
  steps: Step[];
}

export interface Mapping {
  type: string;
  options: Record<string, unknown>;
}

export interface Link {
  title: string;
  url: string;
  targetBlank?: boolean;
}

export interface Property {
  id: string;
  value?: unknown;
}

export interface FieldConfig {
  defaults?: Record<string, unknown>;
  overrides?: { matcher: { id: string; options?: unknown }; properties: Property[] }[];
}

export interface Transformation {
  id: string;
  options?: Record<string, unknown>;
  disabled?: boolean;
}

export interface Panel {
  id: number;
  type: string;
  title?: string;
  description?: string;
  gridPos: Place;
  collapsed?: boolean;
  panels?: Panel[];
  targets?: Target[];
  interval?: string;
  maxDataPoints?: number;
  fieldConfig?: FieldConfig;
  options?: Record<string, unknown>;
  transformations?: Transformation[];
}

export interface Option {
  text: string | string[];
  value: string | string[];
  selected?: boolean;
}

export interface Variable {
  name: string;
  type: string;
  label?: string;
  hide?: number | string;
  query?: string | { query?: string };
  definition?: string;
  regex?: string;
  sort?: number;
  multi?: boolean;
  includeAll?: boolean;
  allValue?: string | null;
  allowCustomValue?: boolean;
  current?: Partial<Option>;
  options?: Option[];
}

export interface Annotation {
  name: string;
  enable?: boolean;
  hide?: boolean;
  expr?: string;
  step?: string;
  iconColor?: string;
  titleFormat?: string;
  textFormat?: string;
  tagKeys?: string;
}

export interface BoardLink {
  type: string;
  title?: string;
  url?: string;
}

export interface Board {
  uid: string;
  title: string;
  description?: string;
  tags?: string[];
  timezone?: string;
  refresh?: string;
  time?: { from: string; to: string };
  panels: Panel[];
  links?: BoardLink[];
  templating?: { list: Variable[] };
  annotations?: { list: Annotation[] };
}

/** What the server tells at the start. */
export interface About {
  version: string;
  prometheus: string;
  scrapeInterval: number;
  boards: Board[];
}
