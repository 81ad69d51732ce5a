/** The local world of a project: the places of its answers, and estimates of the latencies between them. Pure. */
import { COORDINATES, type Area, type Place } from "./areas.ts";

/** Until the first byte of a store beside the reader, in milliseconds. */
const STORE_MS = 15;
/** Until the first byte of a PoP's cache, in milliseconds. */
const CACHE_MS = 5;
/**
 * A round trip of each kilometre as the crow flies, in milliseconds. Light in fibre takes 0.01; routes are longer than
 * the great circle, here by half.
 */
const ROUND_TRIP_MS_PER_KM = 0.015;
const EARTH_RADIUS_KM = 6371;
/** A few objects of the size of a photograph, so that a cache has a choice to make. */
const CACHE_BYTES = 3_000_000;

/** A scenario for `agarose dev --scenario`. Latencies are estimates by distance, not measurements. */
export function geographyOf({ regions, pops }: Area, code: { readonly k: number; readonly m: number }): object {
  return {
    name: "the places of this project",
    about: "latencies by distance: estimates, not measurements",
    code,
    objects: { count: 100, bytes: 400_000 },
    regions: regions.map(({ name }) => name),
    pops: pops.map((pop) => ({
      name: pop.name,
      regionLatencyMs: Object.fromEntries(
        regions.map((region) => [region.name, STORE_MS + roundTripMs(pop, region.awsRegion)]),
      ),
      cacheLatencyMs: CACHE_MS,
      peerLatencyMs: Object.fromEntries(
        pops.filter((peer) => peer !== pop).map((peer) => [peer.name, CACHE_MS + roundTripMs(pop, regionBeside(peer))]),
      ),
      capacityBytes: CACHE_BYTES,
      regionMbitPerSecond: 200,
    })),
    noise: { lognormalSigma: 0.1 },
    popularity: { type: "zipf", exponent: 1 },
    requests: { perSecond: 10, count: 10_000 },
    policies: [{ name: "backend" }, { name: "lru" }, { name: "adaptive" }],
  };
}

/** Whole milliseconds between a PoP and a region of AWS. */
function roundTripMs(from: Place, to: string): number {
  return Math.round(ROUND_TRIP_MS_PER_KM * distanceKm(COORDINATES[regionBeside(from)]!, COORDINATES[to]!));
}

function regionBeside({ placement }: Place): string {
  return placement.replace("aws:", "");
}

/** Along the great circle, by the haversine formula. */
function distanceKm(from: readonly [number, number], to: readonly [number, number]): number {
  const [lat1, lon1, lat2, lon2] = [...from, ...to].map((degrees) => (degrees * Math.PI) / 180) as [
    number,
    number,
    number,
    number,
  ];
  const half = Math.sin((lat2 - lat1) / 2) ** 2 + Math.cos(lat1) * Math.cos(lat2) * Math.sin((lon2 - lon1) / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(half));
}
