/** The declarations agree with the types that the modules themselves state. */

import type { Device, IndexedDbStore, MemoryStore, Store, Stream, Terms } from "./sdk/index.js";
import type { FileStore } from "./sdk/node.js";
import { Device as RealDevice } from "./sdk/device.js";
import { IndexedDbStore as RealIndexedDbStore } from "./sdk/indexeddb.js";
import { FileStore as RealFileStore } from "./sdk/node/file_store.js";
import { MemoryStore as RealMemoryStore } from "./sdk/store.js";
import { Stream as RealStream } from "./sdk/stream.js";
import { Terms as RealTerms } from "./sdk/terms.js";

type Shown<T> = Pick<T, keyof T>;

export const device = (real: RealDevice): Shown<Omit<Device, "follow" | "observe">> => real;
export const values = (real: RealDevice): Pick<Device, "follow" | "observe"> => real;
export const stream = (real: RealStream): Shown<Omit<Stream, "follow" | "observe">> => real;
export const terms = (real: RealTerms): Terms => real;
type Kept = "name" | "clock" | "load" | "close";
export const indexed = (real: RealIndexedDbStore): Pick<IndexedDbStore, Kept | "discard"> => real as never;
export const file = (real: RealFileStore): Pick<FileStore, "name" | "clock" | "close"> => real;
export const memory = (real: RealMemoryStore): Pick<MemoryStore, "name" | "clock" | "close"> => real;
export const create: (store: Store) => unknown = (store) => RealDevice.create(store as never);
