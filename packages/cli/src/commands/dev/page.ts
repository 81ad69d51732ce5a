/** The page of a local world: the user's app, or the demo of the repository. */
import { existsSync } from "node:fs";
import type { World } from "@agarose/dev-world";

/** The folder of the demo, in a clone of the repository. A published package has none. */
export const DEMO = new URL("../../../../../demo/", import.meta.url);

/** Whether this is a clone that has the demo and its samples. */
export function hasDemo(): boolean {
  return existsSync(DEMO);
}

/** What to serve. */
export interface PageOptions {
  readonly port: number;
  /** Folder or URL of an app; true is a blank page. Undefined: the demo. */
  readonly app?: string | true;
}

/** A running page. */
export interface Page {
  readonly url: string;
  /** Why the app has no page; undefined when it has one. */
  readonly problem?: string | undefined;
  close(): Promise<void>;
}

/** Serves the app or the demo page on `port`. Throws USAGE when the app is neither a folder nor a URL. */
export async function startPage(world: World, control: string, { port, app }: PageOptions): Promise<Page> {
  const { dropInFiles } = await import("@agarose/sw/files");
  // A clone builds them, which must not delay the first visit.
  const files = await dropInFiles();
  const shared = { world, port, dropInFiles: async () => files };
  if (app !== undefined) {
    const { startAppHost } = await import("@agarose/dev-world/app-host");
    return startAppHost({ ...shared, app: app === true ? undefined : app });
  }
  const { startDemo } = (await import(new URL("server.ts", DEMO).href)) as {
    startDemo(options: object): Promise<Page>;
  };
  return startDemo({ ...shared, control });
}
