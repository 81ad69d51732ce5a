/** Refusals before a route sees a request: every request while a variable is wrong, and bodies that are too large. */
import { AgaroseError } from "@agarose/core";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { settingsOf } from "../../runtime/settings.ts";
import type { AppEnv } from "../http.ts";

/** Refuses every request with CONFIG_INVALID while a variable is wrong. */
export const checkSettings: MiddlewareHandler<AppEnv> = async (c, next) => {
  settingsOf(c.env);
  await next();
};

/** Refuses bodies of more than `bytes` bytes with REQUEST_INVALID. */
export function bodyOfAtMost(bytes: number): MiddlewareHandler<AppEnv> {
  return bodyLimit({
    maxSize: bytes,
    onError: () => {
      throw new AgaroseError("REQUEST_INVALID", `the body is larger than ${bytes} bytes`, { max: bytes });
    },
  });
}
