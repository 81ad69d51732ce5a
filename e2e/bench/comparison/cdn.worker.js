/**
 * A CDN, as plainly as it can be built here: an edge cache of whole objects, least recently used first out, in
 * front of whole copies in one bucket or several. `/o/<key>` answers from KV, or from the first bucket that has the
 * object.
 */

/** Key -> bytes, least recently used first: of this isolate, which is the only one there is. */
const held = new Map();
let used = 0;

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    const key = pathname.slice("/o/".length);
    const headers = { "access-control-allow-origin": "*", "access-control-expose-headers": "x-cdn" };
    if (held.has(key)) {
      const body = await env.OBJECTS.get(key, "stream");
      if (body) {
        touch(key, held.get(key));
        return new Response(body, { headers: { ...headers, "x-cdn": "hit" } });
      }
    }
    for (const origin of JSON.parse(env.ORIGINS)) {
      const response = await fetch(`${origin}/${key}`).catch(() => undefined);
      if (!response?.ok) continue;
      const [toClient, toCache] = response.body.tee();
      context.waitUntil(keep(env, key, toCache, Number(response.headers.get("content-length"))));
      return new Response(toClient, { headers: { ...headers, "x-cdn": "miss" } });
    }
    return new Response("no copy could be had\n", { status: 502, headers });
  },
};

async function keep(env, key, body, bytes) {
  const capacity = Number(env.CACHE_BYTES);
  if (bytes > capacity) return body.cancel();
  await env.OBJECTS.put(key, await new Response(body).arrayBuffer());
  if (!held.has(key)) used += bytes;
  touch(key, bytes);
  for (const [oldest, size] of held) {
    if (used <= capacity) break;
    held.delete(oldest);
    used -= size;
    await env.OBJECTS.delete(oldest);
  }
}

function touch(key, bytes) {
  held.delete(key);
  held.set(key, bytes);
}
