/** A page of a hundred small pictures, each a plain <img> below /ec/. The service worker asks for them in batches. */
import { PICTURES } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { startTrial, type TrialPorts } from "./trial.ts";

const KEYS = new Set(PICTURES.map(({ key }) => key));

export function startPage(ports: TrialPorts): void {
  const grid = h("div", { class: "grid", role: "img", "aria-label": "The Old World in a hundred pictures" });
  const { element } = startTrial({
    ...ports,
    title: "Load 100 pictures",
    key: PICTURES[0]!.key,
    isOwn: (key) => KEYS.has(key),
    async work(halfway) {
      // A query makes the browser forget what it has of the picture. The key is the same.
      const turn = `?${Date.now()}`;
      const images = PICTURES.map(({ key }) =>
        h("img", { alt: "", src: `/ec/${key}${turn}`, width: 256, height: 256 }),
      );
      grid.replaceChildren(...images);
      const loaded = Promise.all(images.map(load));
      loaded.catch(() => {});
      await halfway();
      await loaded;
      const used = await bytesOf(ports);
      return { bytes: used, what: `${images.length} pictures` };
    },
  });
  byId("page").replaceChildren(element, grid);
}

function load(image: HTMLImageElement): Promise<void> {
  return new Promise((resolve, reject) => {
    image.addEventListener("load", () => resolve(), { once: true });
    image.addEventListener("error", () => reject(new Error(`${image.src} is not there`)), { once: true });
  });
}

/** The bytes of the latest pictures. Their reads end a moment after the pictures are drawn. */
async function bytesOf({ log }: TrialPorts): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  const latest = log.all.filter(({ key }) => KEYS.has(key)).slice(-PICTURES.length);
  return latest.reduce((sum, read) => sum + read.bytes, 0);
}
