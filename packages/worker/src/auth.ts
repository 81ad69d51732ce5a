/** Admin routes: closed unless ADMIN_TOKEN is set and the request bears it. */
import { AgaroseError } from "@agarose/core";
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "./http.ts";

/** Lets requests with `Authorization: Bearer <ADMIN_TOKEN>` pass; throws FORBIDDEN for all others. */
export const adminOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  const given = /^Bearer (.+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  const { ADMIN_TOKEN } = c.env;
  if (!ADMIN_TOKEN || given === undefined || !(await sameToken(given, ADMIN_TOKEN))) {
    throw new AgaroseError(
      "FORBIDDEN",
      "this route needs `Authorization: Bearer <ADMIN_TOKEN>`, and is closed while that secret is not set",
    );
  }
  await next();
};

/** Compares in a time that tells nothing: hashes have one length, and all of their bytes are looked at. */
async function sameToken(given: string, expected: string): Promise<boolean> {
  const [a, b] = await Promise.all([given, expected].map((token) => sha256(token)));
  return crypto.subtle.timingSafeEqual(a!, b!);
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}
