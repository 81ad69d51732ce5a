/** How a script knows that it is the registered worker: by its file name. A worker that imports it has another name. */

/** Whether a worker's path is that of a drop-in file. */
export function isDropIn(pathname: string): boolean {
  return /\/agarose-sw[^/]*\.js$/.test(pathname);
}
