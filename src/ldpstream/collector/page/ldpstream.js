/** The device SDK at the address at which the collector serves it: the npm package is `sdk/`. */

export * from "./sdk/index.js";
