/** The files that an app serves: the one list of their names, for the build, the page, the workers and the CLI. */

/** The features of a worker's file. */
export interface WorkerFile {
  /** Whether it can store what it reads. */
  readonly store?: boolean;
  /** Whether it decrypts. One that does not reads encrypted objects through a PoP. */
  readonly encryption?: boolean;
  /** Whether it ends a worker: a server sends it under the name of another one. */
  readonly removes?: boolean;
}

/** The file that ends a worker. */
export const REMOVING_FILE = "agarose-sw.remove.js";

/** By name: the files that a page registers, and that take their configuration from their own URL. */
export const WORKER_FILES: Readonly<Record<string, WorkerFile>> = {
  "agarose-sw.js": {},
  "agarose-sw.offline.js": { store: true },
  "agarose-sw.encryption.js": { store: true, encryption: true },
  "agarose-sw.dev.js": { store: true, encryption: true },
  [REMOVING_FILE]: { removes: true },
};

/** The codec, which a worker imports from beside its own file while it is installed. */
export const CODEC_FILE = "agarose-codec.js";

/** Of what the codec's file offers to a reader. The file's bytes may change without it. */
export const CODEC_VERSION = 1;

/**
 * Whether a URL's path names a file of `WORKER_FILES`. A bundler or a server may put a hash or a version behind the
 * name: `agarose-sw.offline-3f2a.js`.
 */
export function isWorkerFile(pathname: string): boolean {
  return /(^|\/)agarose-sw([.-][\w.-]+)?\.js$/.test(pathname);
}

/** The file of `WORKER_FILES` that a URL's path names, or undefined. */
export function workerFileOf(pathname: string): WorkerFile | undefined {
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  // The more specific names come later.
  const found = Object.keys(WORKER_FILES).findLast((file) => {
    const stem = file.slice(0, -".js".length);
    return name.startsWith(stem) && /^[.-]/.test(name.slice(stem.length));
  });
  return found !== undefined && isWorkerFile(pathname) ? WORKER_FILES[found] : undefined;
}
