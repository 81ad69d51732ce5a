/**
 * One colour per source: greens for PoPs, other hues for regions in the order of the configuration. The values are in
 * style/base.css, so that they follow the theme.
 */
import type { WorldFile } from "./world.ts";

const REGION_COLOURS = 8;
const POP_COLOURS = 3;

export class Palette {
  readonly #regions: readonly string[];
  readonly #pops: readonly string[];

  constructor({ config }: WorldFile) {
    this.#regions = config.regions.map(({ name }) => name);
    this.#pops = config.pops.map(({ name }) => name);
  }

  /** Returns the colour of a source as a CSS value. */
  of(kind: "edge" | "peer" | "region", name: string): string {
    const names = kind === "region" ? this.#regions : this.#pops;
    const colours = kind === "region" ? REGION_COLOURS : POP_COLOURS;
    const index = Math.max(0, names.indexOf(name)) % colours;
    return `var(--${kind === "region" ? "region" : "pop"}-${index})`;
  }

  /** Returns every source with its colour, for a legend. */
  all(): { name: string; kind: "edge" | "region"; colour: string }[] {
    const entries = (names: readonly string[], kind: "edge" | "region") =>
      names.map((name) => ({ name, kind, colour: this.of(kind, name) }));
    return [...entries(this.#pops, "edge"), ...entries(this.#regions, "region")];
  }
}
