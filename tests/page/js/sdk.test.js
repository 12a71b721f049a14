/** The JavaScript SDK says what the Python SDK says: shared vectors, made by vectors/make.py. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as sdk from "./inside.js";
import { FAMILY, Olh, fromHex, keyOf, roundsMac, scatter, spelled, toHex } from "./inside.js";
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
  const cases = [
    ...vectors.reports.map((one) => ["histogram", one]),
    ...vectors.numbers.map((one) => ["mean", one]),
  ];
  for (const [query, { oracle, labels, nano, reports, ...known }] of cases) {
    const device = sdk.randomiserOf(query, oracle, labels, nano);
    assert.equal(String(device.worstRatio), known.worst_ratio);
    for (const part of ["buckets", "size", "outputs"]) {
      if (known[part] !== null) assert.equal(device[part], known[part], `${oracle} ${labels} ${nano}`);
    }
    for (const { value, seed, wire } of reports) {
      assert.equal(toHex(device.report(value, new Scripted(seed))), wire, seed);
    }
  }
});

test("numbers are rounded to the same levels, exactly", () => {
  for (const { range: given, levels } of vectors.levels) {
    const range = sdk.Range.read(given);
    for (const [reading, level] of levels) assert.equal(range.level(reading), level, `${reading}`);
    for (const none of [Number.NaN, null, undefined, "1", true, 1n]) {
      assert.equal(range.level(none), null);
    }
    assert.deepEqual([-Infinity, Infinity].map((one) => range.level(one)), [0, given.steps]);
  }
});

test("of a text no more is read than counts, so that a long one takes no longer", () => {
  const held = new sdk.HeldValue();
  const read = [];
  const terms = { size: 2, other: null, place: (value) => read.push(value.length) };
  held.observe("x".repeat(10 ** 6));
  held.place(terms, new Scripted("long"));
  held.follow(() => "ü".repeat(10 ** 6));
  held.place(terms, new Scripted("long"));
  assert.deepEqual(read, [2001, 2001]);
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

const RANDOMISERS = { ...sdk.LABELS, ...sdk.NUMBERS };

for (const name of Object.keys(RANDOMISERS)) {
  for (const [labels, nano] of [
    [2, 1],
    [3, 1_000_000_000],
    [4, 2_500_000_000],
  ]) {
    test(`${name} has exactly the epsilon it states: ${labels} labels, ${nano} nano`, () => {
      const device = new RANDOMISERS[name](labels, nano, SMALL);
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
  for (const name of Object.keys(RANDOMISERS)) {
    const device = new RANDOMISERS[name](9, 1_000_000_000);
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
  for (const { sent, canonical, pin, other, span, timestamps, ends, deadlines, strata: strataOf } of vectors.terms) {
    const terms = await sdk.Terms.read(sent);
    assert.equal(terms.canonical, canonical);
    assert.equal(terms.pin, pin);
    assert.equal(terms.other, other);
    assert.deepEqual(terms.promise, { epsilonNano: sent.epsilon_nano, span });
    for (const [ms, t] of timestamps) assert.equal(terms.timestampAt(ms), t);
    for (const [t, ms] of ends) assert.equal(terms.endOf(t), ms);
    for (const [t, ms] of deadlines) assert.equal(terms.deadlineOf(t), ms);
    assert.equal(terms.selection, sent.selection ?? null);
    assert.equal(terms.format, sent.version);
    const strata = ["", ...terms.levels.map(({ name }) => name)].map((name) => terms.atLevel(name));
    const seen = strata.map((one) => ({
      level: one.level,
      version: one.version,
      round: sdk.roundName(7, one.suffix),
      epsilon_nano: one.epsilonNano,
      span: one.promise.span,
      oracle: one.oracle,
    }));
    assert.deepEqual(seen, strataOf);
    for (const one of strata) assert.deepEqual([one.pin, one.canonical], [pin, canonical]);
    assert.throws(() => terms.atLevel("bold"), { code: "level-unknown" });
  }
});

test("a successor is refused, and agreed to, for the same reasons", async () => {
  const floors = { accept: "not-looser", leastEpsilon: 0.95, longestWindow: 20 };
  for (const { old, new: next, level, objection, agreed, renamed } of vectors.successors) {
    const [before, after] = [(await sdk.Terms.read(old)).atLevel(level), await sdk.Terms.read(next)];
    assert.equal(sdk.objection(before, after), objection, JSON.stringify(next));
    const policies = [...sdk.ACCEPTANCES, { pins: [after.pin] }, floors].map((one) => sdk.Policy.read(one));
    if (!agreed) continue;
    assert.deepEqual(policies.map((one) => one.agrees(before, after)), agreed);
    assert.deepEqual(sdk.renamedBy(before, after, { past: "south" }), renamed);
  }
  const policies = [{ accept: "always" }, { pins: ["x"] }, { leastEpsilon: -1 }, { longestWindow: 0.5 }];
  for (const one of policies) assert.throws(() => sdk.Policy.read(one), { code: "option" });
});

test("a notice is read with suspicion", () => {
  for (const [sent, notice] of vectors.notices) assert.deepEqual(sdk.readNotice(sent), notice);
});

test("announcements are read with suspicion, round by round", () => {
  const read = (one) =>
    one instanceof sdk.Refused
      ? one.facts.field
      : [one.name, one.t, one.epsilonNano, one.deadlineMs, one.rate];
  for (const [sent, known] of vectors.announcements) {
    if (known === null) {
      assert.throws(() => sdk.readAnnouncement(sent), { code: "answer-malformed" });
      continue;
    }
    const told = sdk.readAnnouncement(sent);
    assert.deepEqual({ ...told, rounds: told.rounds.map(read) }, known);
  }
});

test("malformed terms are refused", async () => {
  const withLabel = (label) => ({ ...vectors.terms[0].sent, labels: ["a", label] });
  const labels = ["\ud800", "a".repeat(1001), "😀".repeat(1001), "a".repeat(10 ** 6)];
  for (const sent of [...vectors.malformed_terms, ...labels.map(withLabel)]) {
    await assert.rejects(sdk.Terms.read(sent), sdk.TermsRefused, JSON.stringify(sent));
  }
  assert.ok(await sdk.Terms.read(withLabel("😀".repeat(1000))));
});

test("coins and codes", async () => {
  for (const { secret, t, name, rate, heads } of vectors.coins) {
    assert.equal(await sdk.selects(fromHex(secret), { t, name, rate }), heads);
  }
  for (const { key: digits, path, pin, round, report, level, ...codes } of vectors.macs) {
    const key = fromHex(digits);
    assert.equal(sdk.reportsPath("regions", round), path);
    assert.equal(sdk.termsPath("regions", pin), codes.terms_path);
    assert.equal(toHex(await sdk.reportMac(key, "regions", pin, round, fromHex(report), level)), codes.mac);
    assert.equal(toHex(await sdk.leaveMac(key, "regions")), codes.leave);
    assert.equal(toHex(await sdk.renewMac(key, "regions")), codes.renew);
    assert.equal(toHex(await sdk.termsMac(key, "regions", pin)), codes.terms);
  }
});

test("a device shows the same, and has the same number", async () => {
  for (const { url, place, secret, rejoins, shown, number } of vectors.identities) {
    assert.equal(sdk.readAddress(url, false), place);
    const found = await sdk.enrolmentSecret(fromHex(secret), place, "regions", rejoins);
    assert.equal(toHex(found), shown);
    assert.equal(toHex(await sdk.numberOf(found)), number);
  }
});

test("an enrolment is shown to nobody on the way, unless the application says so", () => {
  const open = ["http://stats.example", "http://127.0.0.1.example", "http://10.0.0.1", "http://localhost.example"];
  for (const url of open) {
    assert.throws(() => sdk.readAddress(url, false), { code: "plain-http" }, url);
    assert.ok(sdk.readAddress(url, true));
  }
  for (const url of ["http://localhost:1", "http://127.8.9.1/x", "http://[::1]:9"]) {
    assert.ok(sdk.readAddress(url, false));
  }
  for (const url of ["stats.example", "", "ftp://a", "https://a?b=1", "https://me@a", null]) {
    assert.throws(() => sdk.readAddress(url, true), { code: "option" }, url);
  }
  assert.equal(sdk.readAddress("https://a.example/ldp//", false), "https://a.example/ldp");
});

test("an address with a password is refused, and does not show it", () => {
  const at = "@stats.example";
  for (const user of ["fleet:pass", ":pass", "fleet:p\npass", "a:b@c:pass", "fleet:pass/word"]) {
    for (const url of [`https://${user}${at}`, `http://${user}${at}`, `ftp://${user}${at}/x`, `//${user}${at}`]) {
      const isQuiet = ({ code, message, facts }) =>
        code === "option" && !`${message} ${JSON.stringify(facts)}`.includes("pass@") && !message.includes("fleet");
      assert.throws(() => sdk.readAddress(url, false), isQuiet, url);
    }
  }
});

test("slots, turns and moments are the same", async () => {
  for (const { key: digits, window, slots, turns, names } of vectors.slots) {
    const key = fromHex(digits);
    for (const [epoch, slot] of slots) assert.equal(await sdk.slotOf(key, window, epoch), slot);
    for (const [t, turn] of turns) {
      assert.equal(await sdk.nextTurn(key, window, t), turn, `${t} of ${window}`);
      assert.equal(await sdk.isTurn(key, window, t), t === turn);
    }
    for (const [t, name] of names) assert.equal(sdk.roundName(t), name);
  }
  for (const { key, deadline_ms, moment_ms } of vectors.moments) {
    assert.equal(await sdk.momentMs(fromHex(key), "regions", deadline_ms), moment_ms);
  }
});

test("texts have the same buckets, in all spellings", async () => {
  for (const { texts, ...given } of vectors.buckets) {
    const vocabulary = sdk.Vocabulary.read(given);
    for (const [text, buckets] of texts) {
      const found = vocabulary.groups.map((_, group) => vocabulary.bucket(text, group));
      assert.deepEqual(found, buckets, JSON.stringify(text));
    }
    for (const none of [null, undefined, 7, 1n, Symbol("a"), {}, ["a"], new String("a")]) {
      assert.equal(vocabulary.bucket(none, 0), null);
    }
  }
  for (const { key, groups } of vectors.groups) {
    for (const [number, group] of groups) assert.equal(await sdk.groupOf(fromHex(key), number), group);
  }
});

test("reports end with the same tag", async () => {
  const tags = new Set();
  for (const one of vectors.tagged) {
    const whole = await sdk.Terms.read(one.sent);
    const terms = await whole.seenBy(fromHex(one.key), one.described);
    assert.deepEqual([terms.tags, terms.tag, terms.pin], [one.tags, one.tag, whole.pin]);
    assert.equal(terms.place(one.value), one.place);
    const report = terms.randomiser(terms.epsilonNano).report(one.place, new Scripted(one.seed));
    assert.equal(toHex(report), one.wire);
    assert.equal(report.at(-1), one.tag);
    tags.add(`${one.sent.query} ${one.tag}`);
  }
  assert.ok(tags.size >= 10, [...tags].join());
});

test("a Hadamard report is uniform over 2^24 columns, and supports its bucket as often as it must", () => {
  const oracle = sdk.randomiserOf("vocabulary", "hadamard", 2 ** 24 - 1, 1_000_000_000);
  const reports = 20_000;
  for (const value of [0, 2 ** 23 - 1, 2 ** 24 - 2]) {
    let [supporting, high] = [0, 0];
    for (let at = 0; at < reports; at += 1) {
      const [, a, b, c] = oracle.report(value, new sdk.SystemSource());
      const column = a + 256 * b + 65_536 * c;
      const both = BigInt(column) & BigInt(value + 1);
      supporting += both.toString(2).replaceAll("0", "").length % 2 === 0;
      high += column >= 2 ** 23;
    }
    // Binomial, e / (e + 1) and 1/2, with standard deviations below 71: seven of them are one in 10^11.
    assert.ok(Math.abs(supporting - (reports * Math.E) / (Math.E + 1)) < 500, `${value}: ${supporting}`);
    if (value !== 2 ** 23 - 1) assert.ok(Math.abs(high - reports / 2) < 500, `${value}: ${high}`);
  }
});

test("questions for rounds have the same codes", async () => {
  for (const { key, stream, after, mac } of vectors.rounds_macs) {
    assert.equal(toHex(await roundsMac(fromHex(key), stream, after)), mac, String(after));
  }
});

test("own time is the same", () => {
  for (const { own_ms, then, now, at } of vectors.own_times) {
    const look = { ...now, endsWithPage: false };
    assert.equal(new sdk.OwnTime(own_ms, then).at(look), at, JSON.stringify({ then, now }));
  }
});

test("after another page load, own time is the wall clock's", () => {
  const look = (wallMs, steadyMs, boot) => ({ wallMs, steadyMs, boot, endsWithPage: true });
  const mark = new sdk.OwnTime(1000, look(50_000, 7000, "a"));
  assert.equal(mark.at(look(0, 7300, "a")), 1300, "the same page: whatever the wall clock says");
  assert.equal(mark.at(look(90_000, 60, "b")), 41_000);
  assert.equal(mark.at(look(49_000, 60, "b")), 1000, "it does not go back");
});

test("ledgers allow and leave the same", () => {
  for (const one of vectors.ledgers) {
    const promises = one.promises.map(([epsilonNano, span, until]) =>
      until === null ? { epsilonNano, span } : { epsilonNano, span, until },
    );
    const ledger = new sdk.Ledger(promises, one.debits, one.forgotten, one.reserves);
    const lefts = (of) => one.left.map((_, at) => of.left(at));
    assert.deepEqual(lefts(ledger), one.left);
    for (const [at, nano, allowed] of one.allows) assert.equal(ledger.allows(at, nano), allowed);
    for (const [nano, moment] of one.free_from) assert.equal(ledger.freeFrom(nano), moment);
    const later = ledger.forget(one.forget.moment);
    assert.equal(later.debits.length, one.forget.debits);
    assert.equal(later.forgotten, one.forget.forgotten);
    assert.deepEqual(lefts(later), one.forget.left);
  }
});

test("a debit leaves its span, also at a fraction of a millisecond", () => {
  const span = 86_400_000;
  for (let at = 0.1; at < 100_000; at += 97.37) {
    const ledger = new sdk.Ledger([{ epsilonNano: 1, span }], [[at, 1]]);
    const free = ledger.freeFrom(1);
    assert.ok(free !== null && free - span >= at && free - span < at + 1, `${at}: ${free}`);
    assert.ok(ledger.allows(free, 1));
  }
});

test("a ledger does not spend what it does not allow", () => {
  const ledger = new sdk.Ledger([{ epsilonNano: 10, span: 3 }]).spend(5, 6);
  assert.throws(() => ledger.spend(8, 5, 7), /does not allow/);
  assert.equal(ledger.spend(9, 5, 8).left(9), 5);
  assert.equal(new sdk.Ledger(ledger.promises, ledger.debits, 6).left(8), 0);
});

test("the rules decide the same", async () => {
  const open = await sdk.Terms.read(vectors.terms[0].sent);
  const slots = await sdk.Terms.read(vectors.terms.find(({ sent }) => sent.deadline_ms).sent);
  const seen = new Set();
  for (const one of vectors.decisions) {
    const terms = one.slots ? slots : open;
    const asked = sdk.readRound(one.round);
    const state = {
      terms,
      ledger: new sdk.Ledger([terms.promise], one.debits, one.forgotten),
      limit: limitOf(one),
      answered: new Map(one.answered ? [[keyOf(asked), fromHex("0100")]] : []),
      selected: await sdk.isSelected(asked, terms, fromHex(one.secret), fromHex(one.key)),
    };
    const decision = sdk.decide(one.pin, asked, state, one.own_ms, one.label_ms);
    const outcome = inWords(decision);
    assert.equal(outcome, one.outcome, JSON.stringify(one));
    seen.add(outcome.startsWith("wait") ? "wait" : outcome);
  }
  assert.ok(seen.size >= 10, [...seen].join(", "));
});

function limitOf({ limit, forgotten }) {
  if (!limit) return undefined;
  const [epsilonNano, span] = limit.promise;
  return new sdk.Ledger([{ epsilonNano, span }], limit.debits, forgotten);
}

function inWords(decision) {
  if (decision instanceof sdk.Refused) return `refused ${decision.code}`;
  if ("silence" in decision) return `silence ${decision.silence}`;
  if ("repeat" in decision) return `repeat ${toHex(decision.repeat)}`;
  return "waitMs" in decision ? `wait ${decision.waitMs}` : "fresh";
}

test("words, and lengths of time", () => {
  assert.deepEqual(JSON.parse(JSON.stringify(sdk.PROBLEMS)), vectors.problems);
  assert.deepEqual([60_000, 90_000, 1500, 7 * 86_400_000].map(spelled), ["1m", "90s", "1500ms", "7d"]);
});
