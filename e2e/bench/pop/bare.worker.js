/**
 * The least a Worker can do to serve a cached stripe: `/kv/<name>` reads a KV value and returns it, `/cache/<name>`
 * reads the same bytes from the Cache API once they are there.
 */
export default {
  async fetch(request, env) {
    const [, store, name] = new URL(request.url).pathname.split("/");
    if (store === "cache") {
      const found = await caches.default.match(request.url);
      if (found) return new Response(await found.arrayBuffer());
    }
    const value = await env.CHUNKS.get(decodeURIComponent(name), "arrayBuffer");
    if (!value) return new Response("no such value\n", { status: 404 });
    if (store === "cache") {
      const headers = { "cache-control": "max-age=3600" };
      await caches.default.put(request.url, new Response(value, { headers }));
    }
    return new Response(value);
  },
};
