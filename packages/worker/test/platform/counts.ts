/** The counts of a world that is started with `limited`. */
import type { TestWorld } from "../world.ts";
import type { InvocationReport } from "./platform-limits.ts";

/** Operations since the counts were taken last. An invocation is in those of its beginning alone. */
export interface Counts {
  readonly invocations: InvocationReport[];
  /** By Durable Objects. */
  readonly rowsWritten: number;
  /** By class and method. */
  readonly objectCalls: Record<string, number>;
}

/** Takes the counts, which begin anew. */
export async function takeCounts({ url }: TestWorld): Promise<Counts> {
  return (await (await fetch(`${url}/__limits`)).json()) as Counts;
}
