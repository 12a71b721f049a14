/** All of the SDK's modules, for tests: the package itself shows the names in its declarations only. */

export * from "../../../src/ldpstream/collector/page/sdk/node.js";
export * from "../../../src/ldpstream/collector/page/sdk/account.js";
export * from "../../../src/ldpstream/collector/page/sdk/authentication.js";
export * from "../../../src/ldpstream/collector/page/sdk/bytes.js";
export * from "../../../src/ldpstream/collector/page/sdk/clock.js";
export * from "../../../src/ldpstream/collector/page/sdk/exchange.js";
export * from "../../../src/ldpstream/collector/page/sdk/fraction.js";
export * from "../../../src/ldpstream/collector/page/sdk/identity.js";
export * from "../../../src/ldpstream/collector/page/sdk/labels.js";
export * from "../../../src/ldpstream/collector/page/sdk/ledger.js";
export * from "../../../src/ldpstream/collector/page/sdk/local_hash.js";
export * from "../../../src/ldpstream/collector/page/sdk/notice.js";
export * from "../../../src/ldpstream/collector/page/sdk/odds.js";
export * from "../../../src/ldpstream/collector/page/sdk/problems.js";
export * from "../../../src/ldpstream/collector/page/sdk/randomisers.js";
export * from "../../../src/ldpstream/collector/page/sdk/randomness.js";
export * from "../../../src/ldpstream/collector/page/sdk/range.js";
export * from "../../../src/ldpstream/collector/page/sdk/rounds.js";
export * from "../../../src/ldpstream/collector/page/sdk/rules.js";
export * from "../../../src/ldpstream/collector/page/sdk/slots.js";
export * from "../../../src/ldpstream/collector/page/sdk/store.js";
export * from "../../../src/ldpstream/collector/page/sdk/strata.js";
export * from "../../../src/ldpstream/collector/page/sdk/succession.js";
export * from "../../../src/ldpstream/collector/page/sdk/terms.js";
export * from "../../../src/ldpstream/collector/page/sdk/values.js";
export * from "../../../src/ldpstream/collector/page/sdk/wholes.js";
