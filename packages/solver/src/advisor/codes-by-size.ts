/**
 * Which code an object gets by its size. A small object is read fastest from few chunks, a large one from many, and
 * every chunk beyond k costs storage.
 *
 * EC-Cache (OSDI'16, section 6.2) keeps objects below 1 MB whole, because more requests cost small reads more than they
 * save. Here the sizes at which k grows follow from latencies, connections and a budget: each size takes the layout of
 * least (expected read time + price x stored bytes), and the price is the lowest at which the whole site fits its
 * budget (Everett's Lagrange multipliers, 1963). Objects that fit in their manifest travel in it.
 */
import { SolverError } from "../errors.ts";
import { asNumber } from "../checked.ts";
import { expectedReadMs } from "../options/latency.ts";
import { WEB_SIZES, type SizeCount } from "./web-sizes.ts";

export { WEB_SIZES, type SizeCount };

/** A code and where its chunks go. The caller has checked that it survives what is promised. */
export interface CodeLayout {
  readonly k: number;
  readonly m: number;
  /** For each of the k + m chunks, the index of its region. */
  readonly regions: readonly number[];
}

/** The request for codes by size. */
export interface CodesRequest {
  /** Milliseconds to the first byte from each region, as the audience sees it on average; at least one, each >= 0. */
  readonly latenciesMs: readonly number[];
  /** Layouts to choose from, at least one. */
  readonly layouts: readonly CodeLayout[];
  /** The most bytes of an object that may travel inside its manifest; 0 for none. */
  readonly inlineBytesMax: number;
  /** Requests that a client has under way at one host. Default 6, as browsers have over HTTP/1.1. */
  readonly connections?: number;
  /**
   * Stored bytes per byte of data, over the whole site, and not less than the promise costs. Default 1.45, or 1.1 times
   * what the promise costs where that is more.
   */
  readonly storageMax?: number;
  /** Sizes of the site's objects. Default `WEB_SIZES`. */
  readonly sizes?: readonly SizeCount[];
  /** Bytes per second of one transfer. Default 25,000,000. */
  readonly bytesPerSecond?: number;
}

/** The code of the objects up to a size. */
export interface SizedCode {
  /** Largest object in bytes; undefined for the last entry, which has no limit. */
  readonly bytesMax?: number;
  readonly k: number;
  readonly m: number;
  /** Whether the object travels inside its manifest: then k is 1 and m is 0. */
  readonly inline?: true;
}

/** The codes of all sizes, ascending, and what they cost. */
export interface CodesBySize {
  readonly codes: readonly SizedCode[];
  /** Stored bytes per byte of the sizes that were assumed, manifests included. */
  readonly storage: number;
}

const CONNECTIONS = 6;
const STORAGE_MAX = 1.45;
const STORAGE_ROOM = 1.1;
const BYTES_PER_SECOND = 25e6;
/** Relative spread of a latency, as in `advise`. */
const SIGMA = 0.3;
/** The bytes of a manifest without hashes (names, version, signature), which every region stores. */
const MANIFEST_BYTES = 900;
/** Base64 of one hash of 32 bytes. */
const HASH_CHARACTERS = 43;
/** Prices of a stored byte in milliseconds: below the one it is as good as free, above the other it decides alone. */
const PRICE_MIN = 1e-12;
const PRICE_MAX = 1e6;
const SEARCH_STEPS = 60;

/**
 * Returns the codes. k never falls as objects grow.
 *
 * @throws SCENARIO_INVALID without a layout.
 */
export function codesBySize(request: CodesRequest): CodesBySize {
  const { layouts, sizes = WEB_SIZES, storageMax } = request;
  if (layouts.length === 0) throw new SolverError("SCENARIO_INVALID", "no code keeps the promise: add regions", {});
  asNumber(storageMax ?? STORAGE_MAX, "storageMax", 1);
  asNumber(request.connections ?? CONNECTIONS, "connections", 1);
  const options = sizes.map(({ bytes }) => optionsOf(bytes, request));
  const data = sizes.reduce((sum, { bytes, count }) => sum + bytes * count, 0);
  const storageOf = (chosen: readonly Option[]): number =>
    chosen.reduce((sum, { storedBytes }, size) => sum + storedBytes * sizes[size]!.count, 0) / data;
  const least = storageOf(choose(options, PRICE_MAX));
  const budget = Math.max(least, storageMax ?? (least <= STORAGE_MAX ? STORAGE_MAX : STORAGE_ROOM * least));
  let chosen = choose(options, 0);
  let [low, high] = [PRICE_MIN, PRICE_MAX];
  for (let step = 0; step < SEARCH_STEPS && storageOf(chosen) > budget; step++) {
    // Prices differ by orders of magnitude, so the search halves the exponent.
    const price = Math.sqrt(low * high);
    if (storageOf(choose(options, price)) > budget) low = price;
    else high = price;
  }
  if (storageOf(chosen) > budget) chosen = choose(options, high);
  return { codes: codesOf(chosen, sizes), storage: storageOf(chosen) };
}

interface Option {
  readonly layout: CodeLayout;
  readonly inline: boolean;
  readonly readMs: number;
  readonly storedBytes: number;
}

/** The possible codes of an object of `bytes` bytes. */
function optionsOf(bytes: number, request: CodesRequest): Option[] {
  const { layouts, latenciesMs, inlineBytesMax } = request;
  const regions = latenciesMs.length;
  if (bytes <= inlineBytesMax) {
    // The manifest is read in any case, from one region, and every region holds it.
    const storedBytes = regions * (MANIFEST_BYTES + (bytes * 4) / 3);
    return [{ layout: { k: 1, m: 0, regions: [] }, inline: true, readMs: 0, storedBytes }];
  }
  return layouts.map((layout) => {
    const { k, m } = layout;
    const manifest = MANIFEST_BYTES + HASH_CHARACTERS * (k + m);
    const storedBytes = Math.ceil(bytes / k) * (k + m) + regions * manifest;
    return { layout, inline: false, readMs: readMs(bytes, layout, request), storedBytes };
  });
}

/**
 * Expected milliseconds of a read by late binding with one request beyond k, plus the time for which its requests keep
 * connections from the other reads of a page.
 */
function readMs(bytes: number, { k, m, regions }: CodeLayout, request: CodesRequest): number {
  const { latenciesMs, connections = CONNECTIONS, bytesPerSecond = BYTES_PER_SECOND } = request;
  const transferMs = (bytes / k / bytesPerSecond) * 1000;
  const requests = regions
    .map((region) => latenciesMs[region]! + transferMs)
    .toSorted((a, b) => a - b)
    .slice(0, k + Math.min(m, 1))
    .map((meanMs) => ({ meanMs, sdMs: SIGMA * meanMs }));
  const busyMs = requests.slice(0, k).reduce((sum, { meanMs }) => sum + meanMs, 0);
  return expectedReadMs(requests, k) + busyMs / (connections * latenciesMs.length);
}

/** For each size the option of least time and price, with a k that does not fall. */
function choose(options: readonly (readonly Option[])[], price: number): Option[] {
  let kMin = 0;
  return options.map((all) => {
    const cost = ({ readMs: ms, storedBytes }: Option): number => ms + price * storedBytes;
    const allowed = all.filter((option) => ranked(option) >= kMin);
    const best = allowed.reduce((one, other) => (cost(other) < cost(one) ? other : one));
    kMin = ranked(best);
    return best;
  });
}

/** Inline objects come before whole copies. */
function ranked({ inline, layout }: Option): number {
  return inline ? 0 : layout.k;
}

function codesOf(chosen: readonly Option[], sizes: readonly SizeCount[]): SizedCode[] {
  const codes: { -readonly [F in keyof SizedCode]: SizedCode[F] }[] = [];
  for (const [size, { layout, inline }] of chosen.entries()) {
    const { bytes } = sizes[size]!;
    const last = codes.at(-1);
    const isSame = last?.k === layout.k && last.m === layout.m && (last.inline ?? false) === inline;
    if (last && isSame) last.bytesMax = bytes;
    else codes.push({ bytesMax: bytes, k: layout.k, m: layout.m, ...(inline && { inline: true as const }) });
  }
  delete codes.at(-1)!.bytesMax;
  return codes;
}
