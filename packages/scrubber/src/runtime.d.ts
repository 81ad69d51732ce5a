/**
 * The part of `cloudflare:workers` that a scrubber uses. Its own types would replace those of Node, which the walk
 * needs.
 */
declare module "cloudflare:workers" {
  export interface WorkflowEvent<Params> {
    readonly payload: Params;
    readonly timestamp: Date;
    readonly instanceId: string;
  }

  export interface StepOptions {
    readonly retries?: {
      readonly limit: number;
      readonly delay: string | number;
      readonly backoff?: "constant" | "linear" | "exponential";
    };
    readonly timeout?: string | number;
  }

  export interface WorkflowStep {
    do<T>(name: string, run: () => Promise<T>): Promise<T>;
    do<T>(name: string, options: StepOptions, run: () => Promise<T>): Promise<T>;
    sleep(name: string, ms: number): Promise<void>;
  }

  /** The part of a Durable Object's storage that is used. */
  export interface DurableStorage {
    get(name: string): Promise<unknown>;
    put(name: string, value: unknown): Promise<void>;
    list(options: { readonly prefix: string }): Promise<Map<string, unknown>>;
    delete(names: string[]): Promise<number>;
  }

  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: { readonly storage: DurableStorage };
    protected readonly env: Env;
    constructor(context: never, env: Env);
  }

  export abstract class WorkflowEntrypoint<Env> {
    protected readonly env: Env;
    constructor(context: never, env: Env);
    abstract run(event: WorkflowEvent<unknown>, step: WorkflowStep): Promise<unknown>;
  }
}
