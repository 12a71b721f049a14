/** A device of ldpstream, in Node. */

import type { Change, Clock, Memory, Store } from "./index.js";

export * from "./index.js";

/**
 * A device in a file of mode 0600, which one process at a time has until it closes the store.
 *
 * @example
 * const device = await Device.open(new FileStore("telemetry.ldp"));
 */
export class FileStore implements Store {
  constructor(path: string);
  readonly name: string;
  readonly clock: Clock;
  create(memory: Memory): Promise<void>;
  load(): Promise<Memory>;
  change<T>(act: (change: Change) => T): Promise<T>;
  close(): Promise<void>;
}
