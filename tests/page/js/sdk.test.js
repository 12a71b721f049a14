/** The JavaScript SDK says what the Python SDK says: shared vectors, made by vectors/make.py. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as sdk from "../../../src/ldpstream/collector/page/ldpstream.js";
import { fromHex, hmacSha256, toHex } from "../../../src/ldpstream/collector/page/sdk/bytes.js";
import { offsetAtEnrolment } from "../../../src/ldpstream/collector/page/sdk/clock.js";
import { FAMILY, Olh, scatter } from "../../../src/ldpstream/collector/page/sdk/local_hash.js";
import { keyOf } from "../../../src/ldpstream/collector/page/sdk/rounds.js";
import { Scripted, distribution, vectors } from "./support.js";

test("odds are floor(2^64 e^epsilon), from 1e-9 to 32", () => {
  for (const { nano, parts, favour } of vectors.odds) {
    assert.equal(sdk.oddsWithin(nano, parts).favour, BigInt(favour), `${nano} / ${parts}`);
  }
});

test("fractions round to doubles as in Python", () => {
  for (const { fraction, value } of vectors.doubles) {
    const [over, under] = fraction.split("/").map(BigInt);
    assert.equal(new sdk.Fraction(over, under).toNumber(), value, fraction);
  }
});

test("under the same draws, the same bytes", () => {
  for (const { oracle, labels, nano, worst_ratio, buckets, size, reports } of vectors.reports) {
    const device = sdk.oracleOf(oracle, labels, nano);
    assert.equal(String(device.worstRatio), worst_ratio);
    if (buckets !== null) assert.equal(device.buckets, buckets, `${oracle} ${labels} ${nano}`);
    if (size !== null) assert.equal(device.size, size, `${oracle} ${labels} ${nano}`);
    for (const { value, seed, wire } of reports) {
      assert.equal(toHex(device.report(value, new Scripted(seed))), wire, seed);
    }
  }
});

test("the hash agrees with hash_vectors.json", () => {
  const file = new URL("../../../src/ldpstream/oracles/hash_vectors.json", import.meta.url);
  const known = JSON.parse(readFileSync(file, "utf8"));
  for (const { label, scattered } of known.scatter) assert.equal(scatter(label), scattered);
  for (const { multiplier, increment, label, buckets, bucket } of known.buckets) {
    const device = new Olh(2, 1);
    device.buckets = buckets;
    assert.equal(device.bucketOf(BigInt(multiplier), BigInt(increment), label), bucket);
  }
});

/** The first terms of the series of e^epsilon, exactly: a little less than e^epsilon. */
function belowExp(nano) {
  const epsilon = new sdk.Fraction(BigInt(nano), 1_000_000_000n);
  let [term, sum] = [new sdk.Fraction(1n), new sdk.Fraction(1n)];
  for (let n = 1n; n <= 60n; n += 1n) {
    term = term.times(epsilon).times(new sdk.Fraction(1n, n));
    sum = sum.plus(term);
  }
  return sum;
}

const SMALL = { keyBits: 2, hashBits: 3, key: (label) => label };

for (const name of Object.keys(sdk.ORACLES)) {
  for (const [labels, nano] of [
    [2, 1],
    [3, 1_000_000_000],
    [4, 2_500_000_000],
  ]) {
    test(`${name} has exactly the epsilon it states: ${labels} labels, ${nano} nano`, () => {
      const device = new sdk.ORACLES[name](labels, nano, SMALL);
      const by = Array.from({ length: labels }, (_, value) =>
        distribution((source) => toHex(device.report(value, source))),
      );
      let worst = new sdk.Fraction(0n);
      for (const here of by) {
        const whole = [...here.values()].reduce((sum, share) => sum.plus(share));
        assert.equal(String(whole), "1/1");
        for (const there of by) {
          for (const [report, share] of here) {
            assert.ok(there.has(report), `only one value can give ${report}`);
            const ratio = share.over(there.get(report));
            if (ratio.compare(worst) > 0) worst = ratio;
          }
        }
      }
      assert.equal(String(worst), String(device.worstRatio));
      assert.ok(worst.compare(belowExp(nano)) <= 0, "more than e^epsilon");
    });
  }
}

test("a device asks for the same draws whatever its value", () => {
  const asked = (device, value) => {
    const questions = [];
    const source = new Scripted("questions");
    device.report(value, {
      coin: (favour, total) => (
        questions.push(`coin ${favour}/${total}`),
        source.coin(favour, total)
      ),
      below: (bound) => (questions.push(`below ${bound}`), source.below(bound)),
    });
    return questions.join();
  };
  for (const name of Object.keys(sdk.ORACLES)) {
    const device = sdk.oracleOf(name, 9, 1_000_000_000);
    assert.equal(new Set([0, 4, 8].map((value) => asked(device, value))).size, 1, name);
  }
  assert.equal(FAMILY.hashBits, 17);
});

test("the system's source is uniform over a bound that is no power of two", () => {
  const source = new sdk.SystemSource();
  const counts = [0, 0, 0, 0, 0];
  for (let draw = 0; draw < 20_000; draw += 1) counts[Number(source.below(5n))] += 1;
  // 4000 each, standard deviation 57: seven of them are one in 10^11.
  for (const count of counts) assert.ok(Math.abs(count - 4000) < 400, String(counts));
  assert.equal(source.below(1n), 0n);
  assert.ok(source.below(1n << 300n) < 1n << 300n);
});

test("terms: canonical JSON, pin, time", async () => {
  for (const { sent, canonical, pin, slack_ms, timestamps } of vectors.terms) {
    const terms = await sdk.Terms.read(sent);
    assert.equal(terms.canonical, canonical);
    assert.equal(terms.pin, pin);
    assert.equal(terms.slackMs, slack_ms);
    for (const [ms, t] of timestamps) assert.equal(terms.timestampAt(ms), t);
  }
});

test("malformed terms are refused", async () => {
  const lone = { ...vectors.terms[0].sent, labels: ["a", "\ud800"] };
  for (const sent of [...vectors.malformed_terms, lone]) {
    await assert.rejects(sdk.Terms.read(sent), sdk.TermsRefused, JSON.stringify(sent));
  }
});

test("coins and codes", async () => {
  for (const { secret, t, name, rate, heads } of vectors.coins) {
    assert.equal(await sdk.selects(fromHex(secret), { t, name, rate }), heads);
  }
  for (const { key, message, mac } of vectors.macs) {
    assert.equal(toHex((await hmacSha256(fromHex(key), fromHex(message))).slice(0, 16)), mac);
  }
});

test("ledgers leave the same", () => {
  for (const { limit, window, entries, left } of vectors.ledgers) {
    const ledger = new sdk.Ledger(
      limit,
      window,
      entries.map(([t, nano]) => ({ t, nano })),
    );
    assert.deepEqual(
      left.map((_, at) => ledger.left(at + 1)),
      left,
    );
  }
});

test("a ledger's most is the fullest window that contains t, by trying all", () => {
  const draws = new Scripted("ledgers");
  const below = (bound) => Number(draws.below(BigInt(bound)));
  for (let trial = 0; trial < 300; trial += 1) {
    const window = 1 + below(6);
    const entries = Array.from({ length: below(9) }, () => ({ t: below(17), nano: 1 + below(12) }));
    const within = (start) => ({ t }) => start <= t && t < start + window;
    const sum = (start) =>
      entries.filter(within(start)).reduce((total, { nano }) => total + nano, 0);
    const ledger = new sdk.Ledger(1000, window, entries);
    for (let t = 0; t < 20; t += 1) {
      const starts = Array.from({ length: window }, (_, back) => t - back);
      const most = Math.max(...starts.map(sum));
      assert.equal(ledger.most(t), most, JSON.stringify({ window, entries, t }));
    }
  }
});

test("the rules decide the same", async () => {
  const seen = new Set();
  for (const one of vectors.decisions) {
    const terms = await sdk.Terms.read(vectors.terms[0].sent);
    const asked = sdk.readRound(one.round);
    const entries = one.entries.map(([t, nano]) => ({ t, nano }));
    const decision = await sdk.decide(
      one.pin,
      asked,
      {
        terms,
        ledger: new sdk.Ledger(terms.epsilonNano, terms.window, entries),
        answered: new Map(one.answered ? [[keyOf(asked), fromHex("0100")]] : []),
        lastT: Math.max(0, ...entries.map((entry) => entry.t)),
        secret: fromHex(one.secret),
        value: () => (one.has_value ? 0 : null),
      },
      one.now_ms,
    );
    const outcome =
      decision instanceof sdk.Refused
        ? `refused ${decision.code}`
        : "silence" in decision
          ? `silence ${decision.silence}`
          : "repeat" in decision
            ? `repeat ${toHex(decision.repeat)}`
            : "fresh";
    assert.equal(outcome, one.outcome, JSON.stringify(one));
    seen.add(outcome);
  }
  assert.ok(seen.size >= 9, [...seen].join(", "));
});

test("corrections of the clock, and words", () => {
  for (const [collector, sent, received, offset] of vectors.offsets) {
    assert.equal(offsetAtEnrolment(collector, sent, received), offset);
  }
  assert.deepEqual(JSON.parse(JSON.stringify(sdk.PROBLEMS)), vectors.problems);
});
