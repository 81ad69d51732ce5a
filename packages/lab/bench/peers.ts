/**
 * How many messages cooperating PoPs send, and what it costs readers that each talks to its neighbours only.
 *
 *   node packages/lab/bench/peers.ts    # some minutes
 *
 * 3, 10 and 30 PoPs in large cities, six regions, 9+3, Zipf 1 over 60 objects of 1 MB, and caches of a tenth of them.
 * A round trip takes 5 ms and 1.5 times the light's way in fibre along the great circle. `alone`: no PoP reads from
 * another one.
 */
import { parseScenario } from "@agarose/solver/internal/simulator/scenario/scenario";
import { simulate } from "@agarose/solver/internal/simulator/simulate";

/** Latitude and longitude. */
const CITIES = {
  fra: [50.1, 8.7],
  iad: [38.9, -77.5],
  nrt: [35.8, 140.4],
  lhr: [51.5, -0.5],
  gru: [-23.4, -46.5],
  sin: [1.4, 104],
  syd: [-33.9, 151.2],
  lax: [33.9, -118.4],
  bom: [19.1, 72.9],
  jnb: [-26.1, 28.2],
  ams: [52.3, 4.8],
  cdg: [49, 2.5],
  mad: [40.5, -3.6],
  mxp: [45.6, 8.7],
  arn: [59.7, 17.9],
  waw: [52.2, 21],
  ist: [41.3, 28.7],
  ewr: [40.7, -74.2],
  ord: [42, -87.9],
  dfw: [32.9, -97],
  sea: [47.4, -122.3],
  mia: [25.8, -80.3],
  yyz: [43.7, -79.6],
  eze: [-34.8, -58.5],
  kix: [34.4, 135.2],
  icn: [37.5, 126.4],
  hkg: [22.3, 113.9],
  del: [28.6, 77.1],
  mel: [-37.7, 144.8],
  cai: [30.1, 31.4],
} as const;
const REGIONS = {
  frankfurt: "fra",
  dublin: "lhr",
  "n-virginia": "iad",
  "sao-paulo": "gru",
  tokyo: "nrt",
  sydney: "syd",
};
const OBJECTS = 60;
const BYTES = 1_000_000;
const FIBRE_KM_PER_MS = 200;
const MINUTES = 10;
type City = keyof typeof CITIES;

console.log("PoPs  system      messages a minute  of a PoP  mean ms");
for (const count of [3, 10, 30]) {
  const names = Object.keys(CITIES).slice(0, count) as City[];
  const scenario = parseScenario({
    code: { k: 9, m: 3 },
    objects: { count: OBJECTS, bytes: BYTES },
    regions: Object.keys(REGIONS),
    pops: names.map((name) => ({
      name,
      regionLatencyMs: Object.fromEntries(
        Object.entries(REGIONS).map(([region, city]) => [region, 15 + roundTripMs(name, city as City)]),
      ),
      regionMbitPerSecond: 200,
      cacheLatencyMs: 10,
      peerLatencyMs: Object.fromEntries(
        names.filter((peer) => peer !== name).map((peer) => [peer, 10 + roundTripMs(name, peer)]),
      ),
      capacityBytes: 0.1 * OBJECTS * BYTES,
    })),
    popularity: { type: "zipf", exponent: 1 },
    requests: { perSecond: 1, seconds: 60 * MINUTES },
    systems: [
      { name: "alone", policy: "adaptive" },
      { name: "neighbours", policy: "adaptive", joint: true },
      { name: "all pairs", policy: "adaptive", joint: true, nearest: 29 },
    ],
  });
  for (const { name, meanMs, messages = 0 } of simulate(scenario).filter(({ pop }) => pop === "all")) {
    const aMinute = messages / MINUTES;
    const cells = [String(count).padStart(4), name.padEnd(10), aMinute.toFixed(0).padStart(17)];
    console.log([...cells, (aMinute / count).toFixed(1).padStart(8), meanMs.toFixed(1).padStart(7)].join("  "));
  }
}

function roundTripMs(a: City, b: City): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  const [from, to] = [CITIES[a], CITIES[b]].map(([latitude, longitude]) => [radians(latitude), radians(longitude)]) as [
    [number, number],
    [number, number],
  ];
  const cosine = Math.sin(from[0]) * Math.sin(to[0]) + Math.cos(from[0]) * Math.cos(to[0]) * Math.cos(from[1] - to[1]);
  return a === b ? 2 : 5 + (2 * 1.5 * 6371 * Math.acos(Math.min(1, cosine))) / FIBRE_KM_PER_MS;
}
