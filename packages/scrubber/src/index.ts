/**
 * A Worker that heals without anybody looking: a Cron Trigger begins a walk over all objects, a Workflow takes it part
 * by part, and damaged objects are repaired in each, the most endangered first.
 */
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { parseConfig } from "@agarose/storage/config/config";
import { app } from "./routes.ts";
import { parseOptions, type ScrubberOptions } from "./options.ts";
import { scrubPart, START, type Position } from "./part.ts";
import { begin, noteWalk, openWalk, saveWalk, type ScrubberEnv } from "./walks.ts";

export type { ScrubberOptions } from "./options.ts";
export type { ScrubberEnv } from "./walks.ts";

/** What the module of the Worker exports. */
export interface Scrubber {
  /** The default export. */
  readonly worker: {
    fetch(request: Request, env: ScrubberEnv): Response | Promise<Response>;
    scheduled(event: unknown, env: ScrubberEnv): Promise<void>;
  };
  /** The class that `workflows` of Wrangler's configuration names. */
  readonly ScrubWalk: new (context: never, env: ScrubberEnv) => object;
}

/** A part that fails begins again at its first object. What it has repaired is sound by then. */
const RETRIES = { retries: { limit: 5, delay: "1 minute", backoff: "exponential" }, timeout: "1 hour" } as const;

/**
 * Makes the Worker.
 *
 * @param config what `agarose.config.json` holds.
 * @throws CONFIG_INVALID for a configuration that a Worker cannot use, USAGE for an option that cannot be read.
 */
export function createScrubber(config: object, options: ScrubberOptions = {}): Scrubber {
  const parsed = parseConfig(JSON.stringify(config), "the configuration");
  const settings = parseOptions(options, parsed);

  class ScrubWalk extends WorkflowEntrypoint<ScrubberEnv> {
    override async run(event: WorkflowEvent<unknown>, step: WorkflowStep): Promise<void> {
      const { prefix = "", stepsMax } = settings;
      const opened = await step.do("begin", async () => {
        const open = await openWalk(this.env);
        return open?.prefix === prefix ? open : { prefix, startMs: event.timestamp.getTime(), position: START };
      });
      const { startMs } = opened;
      let position: Position = opened.position;
      // The first step and the last are of the same limit.
      for (let part = 1; !position.isEnd && part <= stepsMax - 2; part++) {
        const from = position;
        position = await step.do(`part ${part}`, RETRIES, async () => {
          const to = await scrubPart(parsed, settings, from, startMs);
          await noteWalk(this.env, { prefix, startMs, position: to });
          return to;
        });
      }
      const { totals, isEnd } = position;
      if (isEnd) await step.do("report", () => saveWalk(this.env, { totals, startMs, endMs: Date.now() }));
      else console.warn(`the walk of ${new Date(startMs).toISOString()} goes on at the next Cron Trigger`);
    }
  }

  return {
    ScrubWalk,
    worker: {
      fetch: (request, env) => app.fetch(request, env),
      async scheduled(_event, env) {
        await begin(env);
      },
    },
  };
}
