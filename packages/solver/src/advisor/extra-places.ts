/** Which objects get extra chunks, and where: what saves readers most time for its bytes comes first. Pure. */
import { expectedReadMs } from "../options/latency.ts";

/** An object as it is stored. */
export interface HotObject {
  readonly key: string;
  readonly k: number;
  readonly chunkBytes: number;
  /** The regions of its n chunks, and those of the extra chunks that it has, by name. */
  readonly placement: readonly string[];
  readonly extra: readonly string[];
}

/** A PoP with its readers. */
export interface Reader {
  /** Requests per period, by key. */
  readonly requests: ReadonlyMap<string, number>;
  /** How many chunks of each object its cache has, by key. */
  readonly cached: ReadonlyMap<string, number>;
  /** How long a request takes, by region. */
  readonly latencies: ReadonlyMap<string, { readonly meanMs: number; readonly sdMs: number }>;
}

interface HotChoice {
  readonly objects: readonly HotObject[];
  readonly readers: readonly Reader[];
  readonly regions: readonly string[];
  /** Bytes that all extra chunks may take together. */
  readonly bytesMax: number;
}

/** Present extra chunks multiply an object's requests by this, because a different choice writes chunks. */
const KEPT_FACTOR = 2;
/** Requests that a read makes beyond k. */
const DELTA = 1;

/** One more chunk of an object. */
interface Step {
  readonly object: HotObject;
  /** The regions of its extra chunks with this one. */
  readonly places: readonly string[];
  /** Milliseconds saved per period and byte. */
  readonly worth: number;
}

/**
 * Returns the regions of the extra chunks of each object that shall have some. Each object has at most one in a region,
 * so that the loss of the nearest region leaves the others, and at most k. One that does not fit leaves its room to the
 * next.
 */
export function choosePlaces(choice: HotChoice): ReadonlyMap<string, readonly string[]> {
  const chosen = new Map<string, readonly string[]>();
  let steps = choice.objects.flatMap((object) => nextStep(object, [], choice));
  let free = choice.bytesMax;
  while (steps.length > 0) {
    const best = steps.reduce((a, b) => (b.worth > a.worth ? b : a));
    const { object, places } = best;
    steps = steps.filter((step) => step !== best);
    if (object.chunkBytes > free) continue;
    free -= object.chunkBytes;
    chosen.set(object.key, places);
    steps.push(...nextStep(object, places, choice));
  }
  // Stored chunks stay while there is room, because leaving them costs nothing.
  for (const { key, extra, chunkBytes } of choice.objects) {
    const places = chosen.get(key) ?? [];
    const more = (extra.length - places.length) * chunkBytes;
    const isKept =
      places.every((region, i) => region === extra[i]) && extra.every((name) => choice.regions.includes(name));
    if (more <= 0 || more > free || !isKept) continue;
    free -= more;
    chosen.set(key, extra);
  }
  return chosen;
}

/** The best further chunk of an object, or none if it saves nothing. */
function nextStep(object: HotObject, before: readonly string[], { readers, regions }: HotChoice): Step[] {
  if (before.length === object.k) return [];
  const own = object.extra[before.length];
  const isKept = before.every((region, i) => region === object.extra[i]);
  const saved = (places: readonly string[]): number =>
    timeOf(object, before, readers) - timeOf(object, places, readers);
  const steps = regions
    .filter((region) => !before.includes(region))
    .map((region): Step => {
      const places = [...before, region];
      const factor = isKept && region === own ? KEPT_FACTOR : 1;
      return { object, places, worth: (factor * saved(places)) / object.chunkBytes };
    });
  const [best] = steps.toSorted((a, b) => b.worth - a.worth);
  return best && best.worth > 0 ? [best] : [];
}

/** Milliseconds that all reads of a period wait for regions with these extra chunks. */
function timeOf({ key, k, placement }: HotObject, extra: readonly string[], readers: readonly Reader[]): number {
  return readers.reduce((sum, { requests, cached, latencies }) => {
    const asked = requests.get(key) ?? 0;
    const needed = k - (cached.get(key) ?? 0);
    if (asked === 0 || needed <= 0) return sum;
    const known = [...placement, ...extra].flatMap((region) => latencies.get(region) ?? []);
    const nearest = known.toSorted((a, b) => a.meanMs - b.meanMs).slice(0, needed + DELTA);
    return sum + asked * expectedReadMs(nearest, needed);
  }, 0);
}
