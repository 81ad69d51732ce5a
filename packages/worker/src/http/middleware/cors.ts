/** Which pages may read the answers of a PoP. */
import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import type { AppEnv } from "../http.ts";

/** Objects are public: any page may read them, and see what a read says about itself. */
export const openToAllOrigins: MiddlewareHandler<AppEnv> = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD", "POST", "OPTIONS"],
  allowHeaders: [
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "authorization",
    "cache-control",
    "content-type",
    // Pages that trace their requests send these.
    "traceparent",
    "tracestate",
  ],
  exposeHeaders: [
    "accept-ranges",
    "content-encoding",
    "content-length",
    "content-range",
    "etag",
    "last-modified",
    "server-timing",
    "x-agarose-error",
    "x-agarose-oic",
    "x-agarose-pop",
    "x-agarose-read",
  ],
  maxAge: 86_400,
});
