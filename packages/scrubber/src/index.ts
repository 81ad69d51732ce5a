/**
 * A Worker that heals without anybody looking: a Cron Trigger begins a walk over all objects, a Workflow takes it part
 * by part, and damaged objects are repaired in each, the most endangered first.
 */
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { parseConfig } from "agarose/scrub";
import { app } from "./routes.ts";
import { parseOptions, type ScrubberOptions } from "./options.ts";
import { scrubPart, START } from "./part.ts";
import { begin, saveWalk, type ScrubberEnv } from "./walks.ts";

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
      const startMs = event.timestamp.getTime();
      let position = START;
      for (let part = 1; !position.isEnd; part++) {
        const from = position;
        position = await step.do(`part ${part}`, RETRIES, () => scrubPart(parsed, settings, from, startMs));
      }
      const { totals } = position;
      await step.do("report", () => saveWalk(this.env, { totals, startMs, endMs: Date.now() }));
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
