/** The line that tells how many more regions may fail. */
import { count } from "../page/format.ts";
import type { DemoWorld, WorldState } from "../state/world.ts";

/** `code: "auto"` promises that the loss of so many regions harms nothing. */
const SURVIVES_AUTO = 1;

/** Keeps the line in `element` current. */
export function showRedundancy(world: DemoWorld, element: HTMLElement): void {
  world.addEventListener("change", () => {
    if (world.state) element.textContent = redundancy(world.state);
  });
}

type Redundancy = Pick<WorldState, "code" | "regions">;

/** How many more regions may fail; negative when too many have. A region that corrupts its chunks counts as lost. */
export function regionsToSpare({ code, regions }: Redundancy): number {
  const survives = code === "auto" ? SURVIVES_AUTO : Math.floor(code.m / Math.ceil((code.k + code.m) / regions.length));
  return survives - lostOf(regions);
}

function lostOf(regions: Redundancy["regions"]): number {
  return regions.filter((region) => region.down || region.corrupt > 0).length;
}

/** The text of the line. */
export function redundancy({ code, regions }: Redundancy): string {
  const left = regionsToSpare({ code, regions });
  const lost = lostOf(regions);
  const now = `${count(regions.length - lost, "region")} of ${regions.length} answer with what was stored`;
  if (left < 0) return `${now}. That is fewer than every file needs: some reads fail, and cached ones go on.`;
  if (left === 0) return `${now}. Every file can be read, and no further region may fail.`;
  return `${now}. ${count(left, "more region")} may fail, and every file can be read.`;
}
