/** The lab: samples in real formats, every request of their reads, and what the caches do. */
import { PHOTOS } from "../samples/index.ts";
import { startOverlayButton } from "./page/overlay-button.ts";
import { startTabs } from "./page/tabs.ts";
import { startCharts } from "./reads/charts.ts";
import { startReads } from "./reads/view.ts";
import { startGallery } from "./samples/gallery.ts";
import { startGlobe } from "./samples/globe.ts";
import { startLand } from "./samples/land.ts";
import { startModel } from "./samples/model.ts";
import { startPage } from "./samples/page.ts";
import { startTable } from "./samples/table.ts";
import { startVideo } from "./samples/video.ts";
import type { Palette } from "./state/palette.ts";
import { readObject } from "./state/read-object.ts";
import type { ReadLog } from "./state/reads.ts";
import type { WorkerState } from "./state/service-worker.ts";
import type { DemoWorld } from "./state/world.ts";
import { explain } from "./world/captions.ts";
import { startLoad } from "./world/load.ts";
import { startSavings } from "./world/savings.ts";
import { showProblem, showStatus } from "./world/status.ts";

/** The world, the reads, the colours and the worker of the lab. */
export interface LabPorts {
  readonly world: DemoWorld;
  readonly log: ReadLog;
  readonly palette: Palette;
  readonly worker: Promise<{ readonly state: WorkerState }>;
}

/** Draws the lab. Resolves to what draws its charts again in the colours of another theme. */
export async function startLab({ world, log, palette, worker }: LabPorts): Promise<{ restyle(): void }> {
  const read = async (key: string): Promise<Blob> => {
    const { parts, contentType } = await readObject(log, key);
    return new Blob(parts, { type: contentType });
  };
  showStatus(world, (await worker).state);
  startReads(log, palette);
  startOverlayButton();
  startSavings(world);
  explain(world);
  startLoad({ keys: PHOTOS.map(({ key }) => key), world, read, report: showProblem });
  const charts = startCharts(log, world);
  const trials = { log, world };
  const showMap = startLand(trials);
  startPage(trials);
  startTable(trials);
  startGlobe(trials);
  startModel(log);
  startTabs([
    { id: "photos", title: "Photographs" },
    { id: "video", title: "Video", onShow: startVideo(log) },
    { id: "globe", title: "Globe" },
    { id: "land", title: "Map", onShow: showMap },
    { id: "table", title: "Table" },
    { id: "model", title: "Model" },
    { id: "page", title: "100 pictures" },
  ]);
  startGallery(read);
  return charts;
}
