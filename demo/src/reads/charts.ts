/**
 * Two live charts of the last minutes: the time of each read by kind, and the share of used chunks from a cache at the
 * edge. Dashed lines are runs of the Cron Trigger.
 */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { byId, h } from "../page/dom.ts";
import { usedChunks, type Read, type ReadLog } from "../state/reads.ts";
import type { DemoWorld } from "../state/world.ts";

const WINDOW_SECONDS = 180;
/** The window at first. It grows with the reads. */
const WINDOW_SECONDS_MIN = 45;
const BUCKET_SECONDS = 4;
const HEIGHT = 190;
const KINDS = ["edge", "mixed", "origin", "degraded"] as const;

type CronRuns = () => readonly number[];

export interface Charts {
  /** Draws again with the current colours. */
  restyle(): void;
}

export function startCharts(log: ReadLog, world: DemoWorld): Charts {
  const reads: Read[] = [];
  const crons = (): readonly number[] => world.state?.cronRuns ?? [];
  let dirty = true;
  log.addEventListener("read", (event) => {
    const { detail: read } = event as CustomEvent<Read>;
    if (read.ms === undefined) return;
    reads.push(read);
    dirty = true;
  });
  world.addEventListener("change", () => (dirty = true));

  const element = byId("charts");
  const latency = h("figure", { class: "chart" }, h("figcaption", {}, "Time to the whole object, ms"));
  const hits = h("figure", { class: "chart" }, h("figcaption", {}, "Hit ratio by chunk: from the edge, of all used"));
  element.append(latency, hits);
  let plots: uPlot[] = [];

  const build = (): void => {
    for (const plot of plots) plot.destroy();
    plots = [latencyPlot(latency, crons), hitPlot(hits, crons)];
    refresh();
  };
  const refresh = (): void => {
    const now = Date.now() / 1000;
    while (reads[0] && reads[0].at / 1000 < now - WINDOW_SECONDS) reads.shift();
    const first = (reads[0]?.at ?? Number.POSITIVE_INFINITY) / 1000 - 2;
    const min = Math.max(now - WINDOW_SECONDS, Math.min(now - WINDOW_SECONDS_MIN, first));
    const data = [latencyData(reads), hitData(reads)];
    plots.forEach((plot, i) => {
      plot.batch(() => {
        plot.setData(data[i]!, false);
        plot.setScale("x", { min, max: now });
        if (i === 0) plot.setScale("y", latencyScale(reads));
        else plot.setScale("y", { min: 0, max: 100 });
      });
    });
  };
  build();
  new ResizeObserver(() => {
    const width = latency.clientWidth;
    for (const plot of plots) if (width > 0 && plot.width !== width) plot.setSize({ width, height: HEIGHT });
  }).observe(latency);
  setInterval(() => {
    if (document.visibilityState !== "visible" || (!dirty && reads.length === 0)) return;
    dirty = false;
    refresh();
  }, 1000);
  return { restyle: build };
}

function latencyPlot(parent: HTMLElement, crons: CronRuns): uPlot {
  const points = KINDS.map((kind): uPlot.Series => ({
    label: kind,
    stroke: colour(`--kind-${kind}`),
    paths: () => null,
    points: { show: true, size: 7, fill: colour(`--kind-${kind}`), width: 0 },
  }));
  const median: uPlot.Series = {
    label: "median",
    stroke: colour("--ink"),
    width: 2,
    spanGaps: true,
    points: { show: false },
  };
  return new uPlot(
    {
      ...common(parent, crons),
      scales: { x: { time: true, auto: false }, y: { distr: 3, auto: false } },
      series: [{}, median, ...points],
      axes: [
        timeAxis(),
        { ...axis(), values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : String(tick))), size: 46 },
      ],
    },
    [[], [], [], [], [], []],
    parent,
  );
}

function hitPlot(parent: HTMLElement, crons: CronRuns): uPlot {
  const series: uPlot.Series = {
    label: "hit ratio by chunk",
    stroke: colour("--pop-0"),
    fill: `color-mix(in srgb, ${colour("--pop-0")} 18%, transparent)`,
    width: 2,
    spanGaps: true,
    paths: uPlot.paths.stepped!({ align: 1 }),
    points: { show: false },
  };
  return new uPlot(
    {
      ...common(parent, crons),
      scales: { x: { time: true, auto: false }, y: { auto: false } },
      series: [{}, series],
      axes: [timeAxis(), { ...axis(), values: (_, ticks) => ticks.map((tick) => `${tick}%`), size: 46 }],
    },
    [[], []],
    parent,
  );
}

function common(parent: HTMLElement, crons: CronRuns) {
  return {
    width: parent.clientWidth || 400,
    height: HEIGHT,
    padding: [10, 30, 0, 0] as [number, number, number, number],
    legend: { live: false },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { draw: [(plot: uPlot) => drawCrons(plot, crons)] },
  };
}

function drawCrons(plot: uPlot, crons: CronRuns): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour("--accent");
  ctx.fillStyle = colour("--accent");
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  let labelled = Number.NEGATIVE_INFINITY;
  for (const run of crons()) {
    const x = plot.valToPos(run / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (x - labelled < 34 * devicePixelRatio) continue;
    labelled = x;
    ctx.fillText("cron", x + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}

function axis(): uPlot.Axis {
  return {
    stroke: colour("--ink-soft"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
}

function timeAxis(): uPlot.Axis {
  const format = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return { ...axis(), space: 90, size: 26, values: (_, ticks) => ticks.map((tick) => format.format(tick * 1000)) };
}

/** Returns a colour of style/base.css for a canvas, with light-dark() resolved. */
function colour(variable: string): string {
  const probe = h("i", { style: `color:var(${variable})` });
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function latencyData(reads: readonly Read[]): uPlot.AlignedData {
  const done = reads.filter(({ error }) => error === undefined).toSorted((a, b) => a.at - b.at);
  const x = done.map(({ at }) => at / 1000);
  const byKind = KINDS.map((kind) => done.map((read) => (read.kind === kind ? read.ms! : null)));
  return [x, runningMedian(done), ...byKind];
}

/** Returns the median of the last nine reads at each read. */
function runningMedian(reads: readonly Read[]): number[] {
  return reads.map((_, i) => {
    const near = reads.slice(Math.max(0, i - 8), i + 1).map((read) => read.ms!);
    return near.toSorted((a, b) => a - b)[near.length >> 1]!;
  });
}

function latencyScale(reads: readonly Read[]): { min: number; max: number } {
  const all = reads.map(({ ms = 100 }) => ms);
  return { min: Math.min(10, ...all) / 1.2, max: Math.max(1000, ...all) * 1.2 };
}

function hitData(reads: readonly Read[]): uPlot.AlignedData {
  const buckets = new Map<number, { edge: number; all: number }>();
  for (const read of reads) {
    const start = Math.floor(read.at / 1000 / BUCKET_SECONDS) * BUCKET_SECONDS;
    const bucket = buckets.get(start) ?? { edge: 0, all: 0 };
    const { edge, all } = usedChunks(read);
    buckets.set(start, { edge: bucket.edge + edge, all: bucket.all + all });
  }
  const filled = [...buckets].filter(([, { all }]) => all > 0).toSorted(([a], [b]) => a - b);
  return [filled.map(([start]) => start), filled.map(([, { edge, all }]) => (100 * edge) / all)];
}
