/**
 * Coarse pictures of the photographs, which are requested when the lab opens.
 *
 * A progressive JPEG begins with a coarse picture of the whole. Its first bytes lie in the chunks of the nearest
 * regions, so it is here long before the last chunk of the photograph.
 */
import { PHOTOS } from "../../samples/index.ts";

const COARSE_BYTES = 40 * 1024;

/** The coarse picture of each photograph, by key: a value for `background-image`. Undefined where it failed. */
const coarsePictures = new Map(PHOTOS.map(({ key }) => [key, coarsePicture(key)]));

/** Draws the coarse picture of a photograph behind an image. A failure shows nothing: the whole one will say why. */
export async function showCoarse(image: HTMLImageElement, key: string): Promise<void> {
  const picture = await coarsePictures.get(key);
  if (picture) image.style.backgroundImage = picture;
}

async function coarsePicture(key: string): Promise<string | undefined> {
  const headers = { range: `bytes=0-${COARSE_BYTES - 1}` };
  // Chromium's cache would have it wait for the whole photograph, where the page has asked for that too.
  const answer = await fetch(`/ec/${key}`, { headers, cache: "no-store" }).catch(() => undefined);
  return answer?.status === 206 ? `url(${URL.createObjectURL(await answer.blob())})` : undefined;
}
