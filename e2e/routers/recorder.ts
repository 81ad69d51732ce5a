/** A plugin of all hooks that Serwist and Workbox have. It changes nothing but a header, and tells pages of every call. */
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

function tell(hook: keyof SerwistPlugin, { request, response, error, state }: Param): void {
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
  handlerWillStart: async (param) => tell("handlerWillStart", param),
  requestWillFetch: async (param) => {
    tell("requestWillFetch", param);
    return param.request;
  },
  fetchDidSucceed: async (param) => {
    tell("fetchDidSucceed", param);
    return param.response;
  },
  fetchDidFail: async (param) => tell("fetchDidFail", param),
  handlerDidError: async (param) => {
    tell("handlerDidError", param);
    return undefined;
  },
  handlerWillRespond: async (param) => {
    tell("handlerWillRespond", param);
    const { body, status, headers } = param.response;
    const marked = new Headers(headers);
    marked.set("x-recorded", "yes");
    return new Response(body, { status, headers: marked });
  },
  handlerDidRespond: async (param) => tell("handlerDidRespond", param),
  handlerDidComplete: async (param) => tell("handlerDidComplete", param),
  cacheKeyWillBeUsed: async (param) => {
    tell("cacheKeyWillBeUsed", param);
    return param.request;
  },
  cacheWillUpdate: async (param) => {
    tell("cacheWillUpdate", param);
    return param.response;
  },
  cacheDidUpdate: async (param) => tell("cacheDidUpdate", param),
  cachedResponseWillBeUsed: async (param) => {
    tell("cachedResponseWillBeUsed", param);
    return param.cachedResponse;
  },
};
