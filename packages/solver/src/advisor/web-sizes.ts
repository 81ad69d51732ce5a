/**
 * The sizes of the files of a usual web site, for want of one's own: images and some video.
 *
 * Images follow the HTTP Archive (table `summary_requests.2018_04_15_desktop`, 9,153,030 JPEG responses): the median is
 * 19.06 KiB and the 90th percentile 108.1 KiB. A lognormal law through both has a mean of 47.7 KiB; the archive's is
 * 57.5 KiB. One clip of 10 MB for every 100 images is our assumption.
 */

/** How many objects have a size. */
export interface SizeCount {
  readonly bytes: number;
  readonly count: number;
}

const MEDIAN_BYTES = 19.0586 * 1024;
/** ln(108.085 / 19.0586) / 1.2816, the normal quantile of 90%. */
const SIGMA = 1.3542;
const IMAGES = 10_000;
const VIDEOS = 100;
const VIDEO_BYTES = 10e6;

/** From 1 KiB to 128 MiB, two sizes in each doubling. */
const SIZES = Array.from({ length: 2 * 17 + 1 }, (_, step) => Math.round(1024 * 2 ** (step / 2)));

/** Counts of objects by size, ascending. Each size covers those above the one before it. */
export const WEB_SIZES: readonly SizeCount[] = SIZES.map((bytes, i) => {
  const images = IMAGES * (imagesBelow(bytes) - (i === 0 ? 0 : imagesBelow(SIZES[i - 1]!)));
  const isVideo = bytes >= VIDEO_BYTES && (SIZES[i - 1] ?? 0) < VIDEO_BYTES;
  return { bytes, count: images + (isVideo ? VIDEOS : 0) };
});

/** Share of the images of at most `bytes` bytes. */
function imagesBelow(bytes: number): number {
  return normalBelow(Math.log(bytes / MEDIAN_BYTES) / SIGMA);
}

/** The normal distribution function by the logistic approximation of Bowling et al. (2009), within 0.00014. */
function normalBelow(z: number): number {
  return 1 / (1 + Math.exp(-0.07056 * z ** 3 - 1.5976 * z));
}
