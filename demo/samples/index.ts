/**
 * The sample set: the local world stores it, and the page shows it. LICENSES.md has the original titles, authors,
 * licences and sources.
 */

export interface Photo {
  readonly key: string;
  /** Path from this file. */
  readonly file: string;
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly author: string;
  readonly licence: string;
  /** Its description, for screen readers. */
  readonly alt: string;
}

const BY = "CC BY 4.0";
const BY_SA = "CC BY-SA 4.0";

export const PHOTOS: readonly Photo[] = [
  photo(
    "seeding",
    2000,
    1125,
    "Seeding",
    "Clemens Engelhardt",
    "CC0 1.0",
    "Dandelion clocks in a meadow against the evening sun",
  ),
  photo(
    "picos-de-europa",
    2000,
    1500,
    "Picos de Europa",
    "Aitzol Berasategi",
    BY,
    "A path below grey limestone peaks with snow",
  ),
  photo("fig", 1800, 1218, "Fig", "Trevor “Freespace”", BY, "Half a fig in a red bowl on concrete"),
  photo("friends", 1198, 1800, "Friends", "Aitzol Berasategi", BY, "Two brown dogs looking out of a wooden house"),
  photo("stream", 1920, 1278, "Stream", "Aitzol Berasategi", BY, "A stream falling over mossy rocks in a wood"),
  photo(
    "deep-field",
    1000,
    872,
    "Hubble eXtreme Deep Field",
    "NASA, ESA",
    "Public domain",
    "Hundreds of galaxies on black",
  ),
  photo(
    "aitzgorri",
    1800,
    1198,
    "Aitzgorri",
    "Aitzol Berasategi",
    BY,
    "A mountain ridge above a meadow and autumn woods",
  ),
  photo("brushes", 1365, 1074, "Paint brushes", "Trevor “Freespace”", BY, "Used paint brushes in bright colours"),
  photo(
    "bridge",
    1800,
    1013,
    "Bridge",
    "Sander Klootwijk",
    BY_SA,
    "Cables of a bridge over a wide river under a blue sky",
  ),
  photo(
    "nuthatch",
    1920,
    1080,
    "Nuthatch",
    "Lukas Baubkus",
    "CC BY-SA 3.0",
    "A nuthatch on the trunk of a tree in winter",
  ),
  photo("dragonfly", 1800, 1350, "Dragonfly", "Bolly", BY_SA, "A dragonfly on a twig before leaves"),
  photo("sunset", 1800, 1200, "Sunset", "Aitzol Berasategi", BY, "The sun setting behind hills, seen from a summit"),
];

export const VIDEO = {
  key: "video/walk.mp4",
  file: "walk.mp4",
  title: "A walk through eight of the photographs",
  licence: BY,
} as const;

/** The model file, which `writeModel` of make-model.ts makes. */
export const MODEL = { key: "models/vit-seeded.safetensors", file: "vit-seeded.safetensors" } as const;

/** The map, which `writeMap` of make-map.ts makes, and 100 of its tiles as objects of their own. */
export const MAP = {
  key: "maps/land.pmtiles",
  file: "land.pmtiles",
  title: "Land",
  licence: "Natural Earth, public domain",
} as const;

export interface Picture {
  readonly key: string;
  /** Zoom level, column and row of the tile. */
  readonly tile: readonly [z: number, x: number, y: number];
}

/** Ten rows of ten: the Old World from Scandinavia to Madagascar. */
export const PICTURES: readonly Picture[] = Array.from({ length: 100 }, (_, i) => {
  const [x, y] = [15 + (i % 10), 8 + Math.floor(i / 10)];
  return { key: `tiles/5-${x}-${y}.png`, tile: [5, x, y] };
});

/** The table, which `writeTable` of make-table.ts makes. */
export const TABLE = { key: "tables/weather.parquet", file: "weather.parquet" } as const;

/** The globe, which `writeGlobe` of make-globe.ts makes. */
export const GLOBE = { key: "scenes/globe.glb", file: "globe.glb", title: "Land", licence: MAP.licence } as const;

function photo(
  name: string,
  width: number,
  height: number,
  title: string,
  author: string,
  licence: string,
  alt: string,
): Photo {
  return { key: `photos/${name}.jpg`, file: `photos/${name}.jpg`, width, height, title, author, licence, alt };
}
