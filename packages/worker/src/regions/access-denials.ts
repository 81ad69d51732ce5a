/**
 * Regions that deny this PoP access. Buckets that may not be listed answer 403 for a missing object, too, so only a row
 * of denials without any success between them counts.
 */
const DENIALS_MIN = 3;

/** The denials of one isolate. */
export class AccessDenials {
  readonly #denials = new Map<string, number>();

  /** Notes the status of an answer of a region. */
  note(region: string, status: number): void {
    if (status === 403) this.#denials.set(region, (this.#denials.get(region) ?? 0) + 1);
    else if (status < 300) this.#denials.delete(region);
  }

  /** Returns the regions whose last three or more answers all denied access. */
  get regions(): string[] {
    return [...this.#denials].filter(([, count]) => count >= DENIALS_MIN).map(([region]) => region);
  }
}
