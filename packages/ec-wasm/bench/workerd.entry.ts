/** Worker of the bench: its clock stops while it computes, so the caller times it from outside. */
import relaxed from "./relaxed.wasm";
import simd from "./simd.wasm";
import { serve, type RemoteRequest } from "./remote-calls.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    const modules = { relaxed, simd } as unknown as Record<"relaxed" | "simd", WebAssembly.Module>;
    return Response.json(serve((await request.json()) as RemoteRequest, modules));
  },
};
