/** Wires up the world, the service worker, and the views of the page. */
import { onRead } from "@agarose/sw/devtools";
import { startContest } from "./contest/contest.ts";
import { startKillButtons } from "./contest/kill-buttons.ts";
import { byId } from "./page/dom.ts";
import { startTheme } from "./page/theme.ts";
import { startViews } from "./page/views.ts";
import { Palette } from "./state/palette.ts";
import { applyEvent } from "./state/read-events.ts";
import { ReadLog } from "./state/reads.ts";
import { startServiceWorker } from "./state/service-worker.ts";
import { DemoWorld, type WorldFile } from "./state/world.ts";
import { startMap } from "./world/map.ts";
import { showRedundancy } from "./world/redundancy.ts";
import { showProblem } from "./world/status.ts";
import { startSwitches } from "./world/switches.ts";

async function main(): Promise<void> {
  const file = await loadWorldFile();
  const world = new DemoWorld(file);
  const palette = new Palette(file);
  const log = new ReadLog();
  const worker = startServiceWorker();

  onRead((event) => applyEvent(log, event));
  const contest = startContest(world);
  startKillButtons(world, showProblem);
  startSwitches(world, palette, showProblem);
  startMap(world, log, palette);
  showRedundancy(world, byId("redundancy"));
  let lab: Promise<{ restyle(): void }> | undefined;
  startTheme(() => void lab?.then((charts) => charts.restyle()));
  void world.start();

  let shown = "";
  startViews(["kill", "world", "lab"], (id) => {
    shown = id;
    // The lab has reads of its own, which the contest would disturb.
    void worker.then(() => contest.run(shown !== "lab"));
    if (id === "lab") lab ??= import("./lab.ts").then(({ startLab }) => startLab({ world, log, palette, worker }));
  });
  // Without a service worker the page works too, but gets no events of its reads.
  const { problem } = await worker;
  if (problem) showProblem(new Error(`The service worker did not start: ${problem}. The edge decodes instead.`));
}

async function loadWorldFile(): Promise<WorldFile> {
  const response = await fetch("/world.json", { cache: "no-store" });
  if (!response.ok)
    throw new Error(`/world.json answers ${response.status}: this page must be served by the local world`);
  const { control, config, copies = {} } = (await response.json()) as Partial<WorldFile>;
  if (!config?.regions || !config.pops) throw new Error("/world.json has no client configuration");
  return { config, copies, ...(control !== undefined && { control }) };
}

main().catch(showProblem);
