/** A real HTTP server with a PoP at `/pop` and buckets at `/<region>`, which counts what it is asked. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BUNDLE_CONTENT_TYPE, encodeFrame, encodePlan, objectUrl, type Plan } from "@agarose/core/format";
import type { FakeRegion } from "./fake-world.ts";

const NOTHING = new Uint8Array(0);

export class Host {
  readonly asked: string[] = [];
  /** The answers of its PoP, which caches nothing. */
  plan: Plan | undefined;
  /** Answers in the place of the rest where it returns true. */
  interfere: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  readonly #server: Server;
  readonly #regions: readonly FakeRegion[];

  private constructor(regions: readonly FakeRegion[]) {
    this.#regions = regions;
    this.#server = createServer((request, response) => {
      this.asked.push(request.url!);
      if (!this.interfere(request, response)) this.#answer(request.url!, response);
    });
  }

  /** Listens on its own port, so it is its own origin. */
  static async start(regions: readonly FakeRegion[]): Promise<Host> {
    const host = new Host(regions);
    host.#server.listen(0, "127.0.0.1");
    await once(host.#server, "listening");
    return host;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #answer(path: string, response: ServerResponse): void {
    if (path.startsWith("/pop/v1/read/") && this.plan) {
      response.writeHead(200, { "content-type": BUNDLE_CONTENT_TYPE });
      response.end(Buffer.concat([encodePlan(this.plan), encodeFrame("end", 0, 0, NOTHING)]));
      return;
    }
    if (path.endsWith("/healthz")) return void response.end("ok");
    const [, name] = path.split("/");
    const { store } = this.#regions.find((region) => region.name === name) ?? { store: new Map<string, Uint8Array>() };
    const stored = [...store].find(([object]) => objectUrl(`/${name}`, object) === path);
    response.writeHead(stored ? 200 : 404).end(stored?.[1]);
  }
}
