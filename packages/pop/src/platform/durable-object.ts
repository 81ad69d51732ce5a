/** The base class that `cloudflare:workers` exports. `LocalObjects` makes the instances. */

/** An object that has state, and one instance by name. */
export class DurableObject {
  protected readonly ctx: unknown;
  protected readonly env: unknown;

  constructor(ctx: unknown, env: unknown) {
    this.ctx = ctx;
    this.env = env;
  }
}
