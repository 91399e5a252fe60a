/* What the page's scripts receive from Python (apiece.reporting._content), for `tsc --checkJs`. */

declare const uPlot: any;

type Numbers = Float32Array | Float64Array | Int8Array | Uint8Array | Uint16Array | Uint32Array;

interface Term {
  kind: "power" | "relative" | "shift";
  number?: number;
  coordinate?: number;
}

interface Loss {
  name: string;
  k: number[];
  mean: number[];
  error: number[];
  is_root?: boolean;
  curve_k?: number[];
  curve?: number[];
  low?: number[];
  high?: number[];
  k_range?: [number, number];
}

interface Head {
  file: string | null;
  data: string | null;
  target: string | null;
  model: string | null;
  measures: [string, string][];
  rmse: number | null;
  advice: { headline: string; scope: string; effect: string[][] } | null;
}

interface Report {
  format: number;
  version: string;
  title: string;
  metric: string;
  level: number;
  z: number;
  family: string;
  parameters: string[];
  scale: string | null;
  decay: string | null;
  terms: Term[] | null;
  k_range: [number, number];
  k_ref: number;
  k_reach: [number, number];
  k_pool: number;
  reach: number;
  widening: number;
  n_pool: number | null;
  curve_k: number[] | null;
  ids: string[];
  labels?: string[];
  classes?: string[] | null;
  advices?: string[];
  reasons?: string[];
  statuses: string[];
  status_counts: [string, number][];
  advice_counts: [string, number][];
  caveat: string | null;
  facts: Record<string, [string, string][]>;
  notes: string[];
  loss: Loss | null;
  head: Head;
  text: string | null;
  bins: number[];
  columns?: { name: string; text?: string[]; array?: string }[];
  near: { by: string; width: number };
  slices?: { by: string; names: string[]; counts: number[] };
  why?: { each: number; rows: { ids: string[]; labels: string[]; texts: string[] } };
  arrays: Record<string, any>;
}
