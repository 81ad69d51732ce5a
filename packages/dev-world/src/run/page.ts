/** The page of a running world: the user's app, or the demo that the project has for it. */
import { pathToFileURL } from "node:url";
import type { World } from "../world/world.ts";
import type { WorldRoutesOptions } from "../app-host/world-routes.ts";
import type { Uploader } from "../world/uploader.ts";

/** Dependencies of a demo page. */
export interface DemoOptions {
  /** 0 for any free one. */
  readonly port: number;
  /** URL of the world's control address. */
  readonly control: string;
  readonly world: World;
  readonly uploader: Uploader;
  readonly dropInFiles: WorldRoutesOptions["dropInFiles"];
}

/** The exports of a demo's module. */
export interface Demo {
  /** Stores the objects that the page shows. */
  storeSamples(uploader: Uploader): Promise<void>;
  startDemo(options: DemoOptions): Promise<Page>;
}

/** A running page. */
export interface Page {
  readonly url: string;
  /** Why the app has no page; undefined when it has one. */
  readonly problem?: string | undefined;
  close(): Promise<void>;
}

/** Loads the demo of the module at `path`. */
export function loadDemo(path: string): Promise<Demo> {
  return import(pathToFileURL(path).href) as Promise<Demo>;
}

/**
 * Serves the app or the demo page on `port`. Throws USAGE when the app is neither a folder nor a URL.
 *
 * @param page a demo, or the folder or URL of an app; true is a blank page.
 */
export async function startPage(
  world: World,
  control: string,
  port: number,
  page: Demo | string | true,
  uploader: Uploader,
): Promise<Page> {
  const { dropInFiles } = await import("@agarose/sw/files");
  // A clone builds them, which must not delay the first visit.
  const files = await dropInFiles();
  const shared = { world, port, dropInFiles: async () => files };
  if (typeof page === "object") return page.startDemo({ ...shared, control, uploader });
  const { startAppHost } = await import("../app-host/app-host.ts");
  return startAppHost({ ...shared, app: page === true ? undefined : page });
}
