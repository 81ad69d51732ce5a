/**
 * The web host of an app as small as it gets: a blank page, and everything else as the local world's host has it. On a
 * free port, thus an origin of its own.
 */
import { createServer, request, type OutgoingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { text } from "node:stream/consumers";

export interface AppHost {
  /** Address of the blank page. */
  readonly url: string;
  /** What browsers have sent to `/csp-report`. */
  readonly reports: readonly CspReport[];
  close(): Promise<void>;
}

export interface AppFile {
  readonly contentType: string;
  readonly body: string;
}

/** What `report-uri` sends (Content Security Policy Level 3, section 5.3), as far as it is asked for. */
export interface CspReport {
  readonly "effective-directive": string;
  readonly "blocked-uri": string;
}

/**
 * Starts it.
 *
 * @param upstream address of the world's own web host.
 * @param headers sent with the page, with the service worker's script and with `files`, such as a Content Security Policy.
 * @param files of the app's own, by path.
 */
export async function startAppHost(
  upstream: string,
  headers: OutgoingHttpHeaders = {},
  files: Readonly<Record<string, AppFile>> = {},
): Promise<AppHost> {
  const reports: CspReport[] = [];
  const server = createServer((asked, answer) => {
    if (asked.url === "/blank") {
      answer.writeHead(200, { "content-type": "text/html", ...headers });
      answer.end("<!doctype html><title>An app</title><main></main>");
      return;
    }
    const file = files[asked.url ?? "/"];
    if (file) {
      answer.writeHead(200, { "content-type": file.contentType, ...headers }).end(file.body);
      return;
    }
    if (asked.url === "/csp-report") {
      void text(asked).then((body) => reports.push((JSON.parse(body) as { "csp-report": CspReport })["csp-report"]));
      answer.writeHead(204).end();
      return;
    }
    const { host: _host, ...passed } = asked.headers;
    const { pathname, search } = new URL(asked.url ?? "/", upstream);
    const options = { method: asked.method, headers: passed, agent: false };
    const passedOn = request(new URL(pathname + search, upstream), options, (got) => {
      const isWorker = pathname.startsWith("/agarose-sw");
      answer.writeHead(got.statusCode ?? 502, { ...got.headers, ...(isWorker ? headers : {}) });
      pipeline(got, answer, () => {});
    });
    passedOn.on("error", () => answer.destroy());
    answer.once("close", () => passedOn.destroy());
    pipeline(asked, passedOn, () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/blank`,
    reports,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
