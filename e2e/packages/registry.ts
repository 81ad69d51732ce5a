/** A registry of npm on this machine, which has the packed packages and sends npm elsewhere for all others. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import type { PackedPackage } from "../../scripts/release/packages.ts";

/** A running registry. */
export interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts it. `others` is the address of the registry that has the other packages. */
export async function startRegistry(packed: readonly PackedPackage[], others: string): Promise<Registry> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "/").slice(1);
    const asTarball = packed.find(({ tarball }) => path === `tarballs/${basename(tarball)}`);
    const asName = packed.find(({ name }) => name === path);
    if (asTarball) void readFile(asTarball.tarball).then((bytes) => response.end(bytes));
    else if (asName) void packument(asName, url).then((body) => response.end(JSON.stringify(body)));
    else response.writeHead(307, { location: new URL(request.url ?? "/", others).href }).end();
  });
  const url = await listenLocally(server);
  return {
    url,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The document of a registry for a package with one version. */
async function packument({ name, folder, tarball }: PackedPackage, url: string): Promise<object> {
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as { version: string };
  const { version } = manifest;
  const dist = { tarball: `${url}/tarballs/${basename(tarball)}` };
  return { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } };
}
