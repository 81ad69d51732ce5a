/** A plugin with every hook of Serwist and Workbox. It reports every call to pages, and adds one header. */
import type { SerwistPlugin } from "serwist";
import type { HookCall } from "./hook-call.ts";

interface Param {
  readonly request: Request;
  readonly response?: Response;
  readonly error?: Error;
  readonly state?: Record<string, unknown>;
}

const channel = new BroadcastChannel("hooks");
let states = 0;

function report(hook: keyof SerwistPlugin, { request, response, error, state }: Param): void {
  const call: HookCall = {
    hook,
    path: new URL(request.url).pathname,
    state: state ? Number((state["number"] ??= ++states)) : 0,
    status: response?.status,
    error: error && String((error as { code?: unknown }).code ?? error),
  };
  channel.postMessage(call);
}

export const recorder: SerwistPlugin = {
  handlerWillStart: async (param) => report("handlerWillStart", param),
  requestWillFetch: async (param) => {
    report("requestWillFetch", param);
    return param.request;
  },
  fetchDidSucceed: async (param) => {
    report("fetchDidSucceed", param);
    return param.response;
  },
  fetchDidFail: async (param) => report("fetchDidFail", param),
  handlerDidError: async (param) => {
    report("handlerDidError", param);
    return undefined;
  },
  handlerWillRespond: async (param) => {
    report("handlerWillRespond", param);
    const { body, status, headers } = param.response;
    const marked = new Headers(headers);
    marked.set("x-recorded", "yes");
    return new Response(body, { status, headers: marked });
  },
  handlerDidRespond: async (param) => report("handlerDidRespond", param),
  handlerDidComplete: async (param) => report("handlerDidComplete", param),
  cacheKeyWillBeUsed: async (param) => {
    report("cacheKeyWillBeUsed", param);
    return param.request;
  },
  cacheWillUpdate: async (param) => {
    report("cacheWillUpdate", param);
    return param.response;
  },
  cacheDidUpdate: async (param) => report("cacheDidUpdate", param),
  cachedResponseWillBeUsed: async (param) => {
    report("cachedResponseWillBeUsed", param);
    return param.cachedResponse;
  },
};
