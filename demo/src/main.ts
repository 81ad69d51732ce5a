/** Wires up the world, the service worker, and every part of the page. */
import { onRead } from "@agarose/sw/devtools";
import { PHOTOS } from "../samples/index.ts";
import { startCharts } from "./reads/charts.ts";
import { byId, h } from "./page/dom.ts";
import { startGallery } from "./samples/gallery.ts";
import { startLoad } from "./world/load.ts";
import { startMap } from "./world/map.ts";
import { startGlobe } from "./samples/globe.ts";
import { startLand } from "./samples/land.ts";
import { startModel } from "./samples/model.ts";
import { startPage } from "./samples/page.ts";
import { startPieces } from "./samples/pieces.ts";
import { startTable } from "./samples/table.ts";
import { startText } from "./samples/text.ts";
import { startOverlayButton } from "./page/overlay-button.ts";
import { Palette } from "./state/palette.ts";
import { applyEvent } from "./state/read-events.ts";
import { readObject } from "./state/read-object.ts";
import { ReadLog } from "./state/reads.ts";
import { startServiceWorker } from "./state/service-worker.ts";
import { showProblem, showStatus } from "./world/status.ts";
import { startSwitches } from "./world/switches.ts";
import { startTabs } from "./page/tabs.ts";
import { startTheme } from "./page/theme.ts";
import { startVideo } from "./samples/video.ts";
import { startReads } from "./reads/view.ts";
import { startSavings } from "./world/savings.ts";
import { explain } from "./world/captions.ts";
import { DemoWorld, type WorldFile } from "./state/world.ts";

async function main(): Promise<void> {
  const file = await loadWorldFile();
  const world = new DemoWorld(file);
  const palette = new Palette(file);
  const log = new ReadLog();
  const read = async (key: string): Promise<Blob> => {
    const { parts, contentType } = await readObject(log, key);
    return new Blob(parts, { type: contentType });
  };

  onRead((event) => applyEvent(log, event));
  startReads(log, palette);
  startSwitches(world, palette, showProblem);
  startMap(world, log, palette);
  explain(world);
  startSavings(world);
  const charts = startCharts(log, world);
  startTheme(() => charts.restyle());
  startOverlayButton();
  startLoad({ keys: PHOTOS.map(({ key }) => key), world, read, report: showProblem });
  startModel((key, onProgress) => readObject(log, key, onProgress));
  const showVideo = startVideo(log);
  const trials = { log, world };
  startPage(trials);
  const showMap = startLand(trials);
  startTable(trials);
  startPieces(trials);
  startGlobe(trials);
  startText(trials);
  startTabs([
    { id: "photos", title: "Photographs" },
    { id: "page", title: "100 pictures" },
    { id: "land", title: "Map", onShow: showMap },
    { id: "table", title: "Table" },
    { id: "video", title: "Video", onShow: showVideo },
    { id: "pieces", title: "Film in pieces" },
    { id: "globe", title: "Globe" },
    { id: "model", title: "Model file" },
    { id: "text", title: "Text reader" },
  ]);

  const loadGallery = startGallery(read);

  void world.start();
  showStatus(world, { state: "starting" });
  // Without the service worker the images work too, but the page gets no events of their reads.
  showStatus(world, await startServiceWorker());
  loadGallery();
}

async function loadWorldFile(): Promise<WorldFile> {
  const response = await fetch("/world.json", { cache: "no-store" });
  if (!response.ok)
    throw new Error(`/world.json answers ${response.status}: this page must be served by the local world`);
  const { control, config } = (await response.json()) as Partial<WorldFile>;
  if (!config?.regions || !config.pops) throw new Error("/world.json has no client configuration");
  return control === undefined ? { config } : { control, config };
}

main().catch((error: unknown) => {
  showProblem(error);
  byId("status").replaceChildren(h("span", { class: "dot bad" }), "not running");
});
