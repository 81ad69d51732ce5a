/**
 * Plugins as Workbox and Serwist define them: objects with hooks, each with a `state` of its own for every request.
 */
import type { LifeCycleEvent } from "./worker-scope.ts";

/** What a hook is called with. Which of the optional fields there are depends on the hook, as in Workbox. */
export interface HookParam {
  readonly request: Request;
  readonly originalRequest?: Request;
  readonly response?: Response;
  readonly error?: Error;
  readonly event: LifeCycleEvent;
  readonly state: Record<string, unknown>;
}

/** The hooks that are called, in this order; `fetchDidFail` and `handlerDidError` where the read fails. */
export type HookName =
  | "handlerWillStart"
  | "requestWillFetch"
  | "fetchDidSucceed"
  | "fetchDidFail"
  | "handlerDidError"
  | "handlerWillRespond"
  | "handlerDidRespond"
  | "handlerDidComplete";

/** A plugin of Workbox or Serwist. Parameters are left open, so that plugins typed by either library fit. */
export type StrategyPlugin = { readonly [hook in HookName]?: (param: any) => unknown };

/** A plugin within one request. */
export interface StartedPlugin {
  call(hook: HookName, param: Omit<HookParam, "event" | "state">): Promise<unknown>;
}

/** The plugins for one request. */
export function startPlugins(plugins: readonly StrategyPlugin[], event: LifeCycleEvent): StartedPlugin[] {
  return plugins.map((plugin) => {
    const state: Record<string, unknown> = {};
    return { call: async (hook, param) => plugin[hook]?.({ ...param, event, state }) };
  });
}

/**
 * Calls a hook of all plugins in turn. With `replaces`, what one returns for that field is what the next one gets, and
 * at last what is returned; undefined when none returned anything.
 */
export async function runHook<Field extends "request" | "response">(
  plugins: readonly StartedPlugin[],
  hook: HookName,
  param: Omit<HookParam, "event" | "state">,
  replaces?: Field,
): Promise<HookParam[Field] | undefined> {
  let current = param;
  let replaced: HookParam[Field] | undefined;
  for (const plugin of plugins) {
    const result = await plugin.call(hook, current);
    if (replaces === undefined || !result) continue;
    replaced = result as HookParam[Field];
    current = { ...current, [replaces]: replaced };
  }
  return replaced;
}
