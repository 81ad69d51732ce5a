/** A Cache in memory, as Node has none: with a quota, and damage and disappearance on demand. */
export class FakeCache {
  readonly stored = new Map<string, Uint8Array>();
  quotaBytes = Number.POSITIVE_INFINITY;
  /** Writes that were refused because the quota was reached. */
  refused = 0;

  async match(url: string): Promise<Response | undefined> {
    const bytes = this.stored.get(url);
    return bytes && new Response(bytes.slice());
  }

  async put(url: string, response: Response): Promise<void> {
    const bytes = new Uint8Array(await response.arrayBuffer());
    const others = this.bytes - (this.stored.get(url)?.length ?? 0);
    if (others + bytes.length > this.quotaBytes) {
      this.refused++;
      throw new DOMException("Quota exceeded.", "QuotaExceededError");
    }
    this.stored.delete(url);
    this.stored.set(url, bytes);
  }

  async delete(url: string): Promise<boolean> {
    return this.stored.delete(url);
  }

  async keys(): Promise<{ url: string }[]> {
    return [...this.stored.keys()].map((url) => ({ url }));
  }

  get bytes(): number {
    return [...this.stored.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Bytes of stripes: what is omitted is the plans and the index. */
  get stripeBytes(): number {
    return this.stripes.reduce((sum, url) => sum + this.stored.get(url)!.length, 0);
  }

  get stripes(): string[] {
    return [...this.stored.keys()].filter((url) => url.includes("/stripes/"));
  }
}
