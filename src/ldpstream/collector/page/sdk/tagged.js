/** Reports that end with a tag, as `oracles/tagged/`: which part of the fleet a device is of, which is public. */

import { joined } from "./bytes.js";
import { Oracle } from "./oracle.js";

/** The tag does not depend on the value, so the odds are those of the randomiser within. */
export class Tagged extends Oracle {
  /** @param {Oracle} inner @param {number} tag one byte */
  constructor(inner, tag) {
    super(inner.labels, inner.nano);
    this.inner = inner;
    this.tag = tag;
    this.worstRatio = inner.worstRatio;
  }

  /** @param {number} value @param {import("./randomness.js").Source} source */
  payload(value, source) {
    return joined(this.inner.payload(value, source), Uint8Array.of(this.tag));
  }
}
