/** `openseadragon`, as it is, zooms into a picture of many tiles (the format Deep Zoom). */
import { sha256 } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { fileOfPackage, showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

const [WIDTH, HEIGHT, SIDE] = [1_500, 1_000, 256];
const LEVELS = Math.ceil(Math.log2(WIDTH));

/** The little of the library that the test uses: it comes without types. */
declare const OpenSeadragon: (options: object) => {
  addOnceHandler(event: string, handler: () => void): void;
  readonly drawer: { canvas: HTMLCanvasElement };
  readonly viewport: { zoomTo(zoom: number, at: unknown, immediately: boolean): void; getCenter(): unknown };
  readonly world: {
    getItemAt(at: number): { getFullyLoaded(): boolean };
  };
};

/** Each level is half as wide as the next one, and in tiles of its own. Browsers go by the bytes, not by the name. */
function pyramid(): Record<string, Uint8Array> {
  const size = `<Size Width="${WIDTH}" Height="${HEIGHT}"/>`;
  const space = 'xmlns="http://schemas.microsoft.com/deepzoom/2008"';
  const image = `<?xml version="1.0"?><Image ${space} Format="png" Overlap="0" TileSize="${SIDE}">${size}</Image>`;
  const files: Record<string, Uint8Array> = { "zoom/photo.dzi": Buffer.from(image) };
  for (let level = 0; level <= LEVELS; level++) {
    const [width, height] = [WIDTH, HEIGHT].map((pixels) => Math.ceil(pixels / 2 ** (LEVELS - level))) as [
      number,
      number,
    ];
    for (let x = 0; x * SIDE < width; x++) {
      for (let y = 0; y * SIDE < height; y++) {
        const [right, bottom] = [Math.min(SIDE, width - x * SIDE), Math.min(SIDE, height - y * SIDE)];
        files[`zoom/photo_files/${level}/${x}_${y}.png`] = bitmap(right, bottom);
      }
    }
  }
  return files;
}

test("openseadragon shows a picture whole and zoomed into", async ({ browser, world }) => {
  const script = await fileOfPackage("openseadragon/build/openseadragon/openseadragon.min.js");
  const files = { ...pyramid(), "zoom/openseadragon.min.js": script };
  const views = await showSame(browser, world, files, async (page) => {
    await page.addScriptTag({ url: "/ec/zoom/openseadragon.min.js" });
    const pictures = await page.evaluate(async () => {
      const element = document.createElement("div");
      element.style.cssText = "width: 600px; height: 400px";
      document.body.append(element);
      const viewer = OpenSeadragon({
        element,
        tileSources: "/ec/zoom/photo.dzi",
        drawer: "canvas",
        immediateRender: true,
        blendTime: 0,
        showNavigationControl: false,
      });
      await new Promise<void>((resolve) => viewer.addOnceHandler("open", resolve));
      const frames = (): Promise<unknown> =>
        new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      const picture = async (): Promise<string> => {
        // The first frames ask for the tiles, and the last ones draw them.
        await frames();
        while (!viewer.world.getItemAt(0).getFullyLoaded()) await frames();
        await frames();
        return viewer.drawer.canvas.toDataURL();
      };
      const whole = await picture();
      viewer.viewport.zoomTo(3, viewer.viewport.getCenter(), true);
      return [whole, await picture()];
    });
    return pictures.map((picture) => sha256(Buffer.from(picture)));
  });
  expect(new Set(views).size).toBe(2);
});
