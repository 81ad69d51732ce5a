/**
 * * The weight of a read: the share of the object that its client has read. It counts once with that probability, so
 * that counts stay whole numbers, and many small ranges weigh as much as what they read. A client that names an object
 * and leaves weighs no more than what it was sent. Pure.
 */

/** Notes that the client has taken so many more bytes. */
export type NoteTaken = (bytes: number) => void;

/**
 * Returns where to note what the client of one read takes of an object of `objectBytes`.
 *
 * @param count called at most once, while the client takes bytes.
 * @param random from 0 to below 1: the share of the object with which the read counts.
 */
export function weighedRead(objectBytes: number, count: () => void, random: number): NoteTaken {
  let taken = 0;
  let isCounted = false;
  return (bytes) => {
    taken += bytes;
    if (isCounted || taken <= random * objectBytes) return;
    isCounted = true;
    count();
  };
}
