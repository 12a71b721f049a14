/** The parts of the page that need no browser: events, and the releases that it holds. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Unavailable, releasesBetween } from "../../../src/ldpstream/collector/page/app/api.js";
import { extentOf, yRange } from "../../../src/ldpstream/collector/page/app/axis.js";
import { eventParser } from "../../../src/ldpstream/collector/page/app/feed.js";
import { Columns } from "../../../src/ldpstream/collector/page/app/columns.js";
import { History, historyOf, largest, partKey, thinned, topLabels } from "../../../src/ldpstream/collector/page/app/history.js";
import { stepOf } from "../../../src/ldpstream/collector/page/app/next_step.js";
import { Revised } from "../../../src/ldpstream/collector/page/app/revised.js";
import { MOST_TEXTS, REST, Texts, shownText } from "../../../src/ldpstream/collector/page/app/texts.js";
import { withUnit } from "../../../src/ldpstream/collector/page/app/unit.js";
import { byLabel, changes, joined, places } from "../../../src/ldpstream/collector/page/app/versions.js";

const release = (t, values = [0.5, 0.3, 0.2]) => ({
  t,
  at_ms: t * 1000,
  values,
  variance: values.map(() => 0.01),
  fresh: true,
  missed: false,
  asked: 10,
  received: 9,
});
const releases = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => release(from + at));

test("events are read in whatever pieces they come", () => {
  const text =
    'retry: 1000\n\n: hello\n\nid: 1\nevent: release\ndata: {"t":1}\n\nevent: release\r\ndata: a\r\ndata: b\r\n\r\n';
  for (let size = 1; size < 12; size += 1) {
    const seen = [];
    const parse = eventParser((event, data) => seen.push([event, data]));
    for (let at = 0; at < text.length; at += size) parse(text.slice(at, at + size));
    assert.deepEqual(
      seen,
      [
        ["release", '{"t":1}'],
        ["release", "a\nb"],
      ],
      `pieces of ${size}`,
    );
  }
});

test("releases are held once, in order, older ones in front", () => {
  const history = new History(3);
  assert.equal(history.add(releases(10, 19)), 10);
  assert.equal(history.add(releases(15, 22)), 3);
  assert.equal(history.add(releases(1, 9)), 9);
  assert.deepEqual(
    history.rows.map((row) => row.t),
    Array.from({ length: 22 }, (_, at) => at + 1),
  );
  assert.deepEqual(
    history.between(5, 7).map((row) => row.t),
    [5, 6, 7],
  );
  assert.equal(history.add([release(23, [1, 0])]), 0, "of another stream");
});

test("the interval is 1.645 standard deviations to each side, unless it is given", () => {
  const history = new History(2);
  history.add([
    release(1, [0.5, 0.5]),
    { ...release(2, [0.5, 0.5]), low: [0.1, 0.2], high: [0.8, 0.9] },
  ]);
  const [first, second] = history.rows;
  assert.ok(Math.abs(first.data[2] - (0.5 - 0.16448)) < 1e-4);
  assert.ok(Math.abs(second.data[4] - 0.8) < 1e-6);
});

test("the number of releases held is bounded, and less with many labels", () => {
  const history = new History(65_536);
  assert.ok(history.mostRows <= 64);
  const small = new History(2);
  small.mostRows = 5;
  small.add(Array.from({ length: 9 }, (_, at) => release(at + 1, [0.5, 0.5])));
  assert.deepEqual(
    small.rows.map((row) => row.t),
    [5, 6, 7, 8, 9],
  );
});

test("thinning keeps every peak", () => {
  const history = new History(1);
  const values = Array.from({ length: 10_000 }, (_, at) => Math.sin(at / 300));
  values[4321] = 9;
  values[8765] = -9;
  history.add(values.map((value, at) => release(at + 1, [value])));
  const { x, curves } = thinned(history.rows, [0], 1000);
  assert.ok(x.length <= 1002);
  assert.ok(x.every((t, at) => at === 0 || t > x[at - 1]));
  assert.equal(Math.max(...curves[0]), 9);
  assert.equal(Math.min(...curves[0]), -9);
});

test("200 labels and 10,000 timestamps are drawn from in a moment", () => {
  const history = new History(200);
  const values = Array.from({ length: 200 }, (_, at) => at / 20_000);
  history.add(Array.from({ length: 10_000 }, (_, at) => release(at + 1, values)));
  assert.equal(history.rows.length, 10_000);
  const start = performance.now();
  thinned(
    history.rows,
    Array.from({ length: 15 }, (_, at) => at),
    1600,
  );
  topLabels(history.rows.slice(-30), 200, 5);
  assert.ok(performance.now() - start < 500);
});

test("top labels are those with the largest mean, ties in order", () => {
  const history = new History(4);
  history.add([release(1, [0.1, 0.4, 0.4, 0.1]), release(2, [0.3, 0.4, 0.4, 0])]);
  assert.deepEqual(topLabels(history.rows, 4, 3), [1, 2, 0]);
});

test("answers that end early are followed by others, until all is there", async (context) => {
  /** A collector with t = 1 to 20, but for 8 to 10; it gives three at once. */
  const stored = [...releases(1, 7), ...releases(11, 20)];
  let asked = 0;
  context.mock.method(globalThis, "fetch", async (address) => {
    asked += 1;
    const query = new URL(address, "http://collector").searchParams;
    const found = stored.filter((one) => one.t >= Number(query.get("since")));
    const most = Math.min(3, Number(query.get("limit")));
    return new Response(JSON.stringify({ releases: found.slice(0, most) }));
  });
  globalThis.location = /** @type {any} */ ({ href: "http://collector/" });
  const empty = /** @type {any} */ ({ getItem: () => null });
  globalThis.sessionStorage = globalThis.localStorage = empty;
  const times = async (from, to) => (await releasesBetween("a", from, to)).map((one) => one.t);
  assert.deepEqual(await times(5, 13), [5, 6, 7, 11, 12, 13]);
  assert.equal(asked, 2);
  assert.deepEqual(await times(3, 9), [3, 4, 5, 6, 7]);
  assert.deepEqual(await times(-5, 2), [1, 2]);
  assert.deepEqual(await times(19, 30), [19, 20]);
  assert.deepEqual(await times(-5, 0), []);
  context.mock.method(globalThis, "fetch", async () => new Response('{"releases": [{"t"'));
  await assert.rejects(times(1, 2), Unavailable, "an answer that is cut off is none");
});

test("a collector that is busy is asked again", async (context) => {
  let asked = 0;
  context.mock.method(globalThis, "fetch", async () => {
    asked += 1;
    const headers = { "Retry-After": "0.01" };
    return asked < 3 ? new Response("{}", { status: 429, headers }) : new Response('{"releases": []}');
  });
  globalThis.location = /** @type {any} */ ({ href: "http://collector/" });
  globalThis.sessionStorage = /** @type {any} */ ({ getItem: () => null });
  assert.deepEqual(await releasesBetween("a", 1, 2), []);
  assert.equal(asked, 3);
});

test("no figure is revised into the time before the first report", async (context) => {
  const figures = { revised: [0.4, 0.6], revised_low: [0.3, 0.5], revised_high: [0.5, 0.7] };
  context.mock.method(globalThis, "fetch", async (address) => {
    const told = address.includes("/changes?") ? { changes: [] } : { releases: [1, 2, 3].map((t) => ({ t, ...figures })) };
    return new Response(JSON.stringify(told));
  });
  globalThis.location = /** @type {any} */ ({ href: "http://collector/" });
  globalThis.sessionStorage = /** @type {any} */ ({ getItem: () => null });
  globalThis.document = /** @type {any} */ ({ hidden: false });
  const history = new History(2);
  history.add([1, 2, 3].map((t) => ({ ...release(t, [0.5, 0.5]), heard_t: t < 2 ? 0 : t })));
  const stopped = new AbortController();
  const stream = /** @type {any} */ ({ terms: { stream: "a" }, unit: {} });
  const view = /** @type {any} */ ({ history, range: { from: 1, to: 3 } });
  const revised = new Revised(stream, view, () => stopped.abort(), stopped.signal);
  await revised.refresh();
  assert.deepEqual([...revised.figures.keys()], [2, 3]);
});

test("what to do next follows from why a stream is not live", () => {
  globalThis.location = /** @type {any} */ ({ origin: "http://collector" });
  const stream = /** @type {any} */ ({ population: 4000, population_follows: false, unit: {}, texts: {} });
  stream.terms = { stream: "words", labels: [] };
  const few = stepOf({ state: "thin", why: "10 reports came of 400 that were planned" }, stream);
  assert.deepEqual(few?.run, ["ldpstream reload stream.toml"]);
  assert.equal(stepOf({ state: "thin", why: "an interval is 60% of all values wide" }, stream)?.run, undefined);
  assert.match(stepOf({ state: "waiting" }, stream)?.run?.[1] ?? "", /--stream words:texts=1000$/);
});

const VERSIONS = [
  { version: 1, from_t: 1, labels: ["a", "b", "c"], called: null, levels: [level("standard", 1, 20)] },
  {
    version: 2,
    from_t: 3,
    labels: ["c", "ab", "new"],
    called: ["ab", "ab", "c"],
    levels: [level("standard", 0.5, 20), level("careful", 0.25, 40)],
  },
];

function level(name, epsilon, window) {
  return { name, epsilon_nano: epsilon * 1e9, window, oracle: "grr" };
}

test("versions of terms are joined by the names of labels", () => {
  const labels = joined(VERSIONS);
  assert.deepEqual(labels, ["c", "ab", "new", "a", "b"]);
  const history = historyOf({ labels, versions: VERSIONS });
  const later = { ...release(3, [0.6, 0.3, 0.1]), terms_version: 2 };
  assert.equal(history.add([...releases(1, 2), later]), 3);
  const [first, , last] = history.rows.map(({ data }) => [...data.slice(0, 5)]);
  assert.deepEqual(last.map((value) => Math.round(10 * value)), [6, 3, 1, NaN, NaN]);
  assert.deepEqual(first.map(Number.isNaN), [false, true, true, false, false]);
  assert.ok(!history.knows({ ...release(4, [1, 0, 0]), terms_version: 3 }));
  assert.deepEqual(topLabels(history.rows, 5, 1), [0]);
});

test("revised figures of a version are placed by the names of its labels", () => {
  const placed = places(VERSIONS);
  const told = (version) => [...byLabel([0.5, 0.25, 0.125], 5, placed.get(version))];
  assert.deepEqual(told(1), [0.125, NaN, NaN, 0.5, 0.25]);
  assert.deepEqual(told(2), [0.5, 0.25, 0.125, NaN, NaN]);
  assert.deepEqual([...byLabel([0.5, 0.25], 2, null)], [0.5, 0.25]);
});

test("what changed is told in words", () => {
  const [change] = changes(VERSIONS);
  assert.equal(change.t, 3);
  assert.equal(
    change.words,
    "a and b became ab; new: new; ε of standard from 1 to 0.5; a new level, careful",
  );
  const [first] = VERSIONS;
  const merged = { ...first, version: 2, labels: ["a", "c"], called: ["a", "a", "c"] };
  assert.equal(changes([first, merged])[0].words, "b joined a");
  assert.equal(changes([first, { ...first, version: 2 }])[0].words, "details that no figure shows");
});

test("a label that a version does not have leaves a gap, thinned or not", () => {
  const history = historyOf({ labels: joined(VERSIONS), versions: VERSIONS });
  const later = Array.from({ length: 100 }, (_, at) => ({
    ...release(101 + at, [0.6, 0.3, 0.1]),
    terms_version: 2,
  }));
  history.add([...releases(1, 100), ...later]);
  for (const most of [1000, 20]) {
    const { x, curves } = thinned(history.rows, [2, 3], most);
    x.forEach((t, at) => {
      if (Math.abs(t - 100) < 30) return; // buckets on the border have both
      assert.equal(Number.isNaN(curves[0][at]), t <= 100);
      assert.equal(Number.isNaN(curves[1][at]), t > 100);
    });
  }
  const { columns } = new Columns(5).of(history.rows, 11);
  const means = [columns[1], columns.at(-2)].map((column) => [...(column?.means ?? [])]);
  assert.deepEqual(means[0].map(Number.isNaN), [false, true, true, false, false]);
  assert.deepEqual(means[1].map(Number.isNaN), [false, false, false, true, true]);
});

const SHARES = { ends: null, least: 0.01 };
const NUMBERS = { ends: [-20, 60], least: 0.8 };
const curves = (figures, low, high) => [figures, low, high].map((one) => Float64Array.from(one));

test("the axis follows the figures, not intervals that say nothing", () => {
  const figures = Array.from({ length: 50 }, (_, at) => 0.02 + at / 5000);
  const usual = figures.map((one) => one + 0.004);
  const one = curves(figures, figures.map((one) => one - 0.004), [1, 1, 1, ...usual.slice(3)]);
  const [low, high] = yRange(extentOf(one, SHARES), [], SHARES);
  assert.equal(low, 0, "the zero of shares is in sight");
  assert.ok(high > usual.at(-1) && high < 0.05, `${high}`);
  const start = curves([0.005, 0.005], [0, 0], [1, 1]); // all that there is says nothing
  assert.ok(yRange(extentOf(start, SHARES), [], SHARES)[1] < 0.03);
});

test("the axis has room for intervals that are usual, and for near thresholds", () => {
  const noisy = curves([0.5, 0.4, 0.45], [0.3, 0.2, 0.25], [0.7, 0.6, 0.65]);
  const [low, high] = yRange(extentOf(noisy, SHARES), [], SHARES);
  assert.ok(low === 0 && high > 0.7);
  assert.ok(yRange(extentOf(noisy, SHARES), [{ at: 0.9 }], SHARES)[1] > 0.9);
  assert.ok(yRange(extentOf(noisy, SHARES), [{ at: 5 }], SHARES)[1] < 1, "one that is far is not");
  const mean = curves([3, 4, 5], [-20, 3, 4], [60, 5, 6]);
  const [from, to] = yRange(extentOf(mean, NUMBERS), [], NUMBERS);
  assert.ok(from < 2 && from > 0 && to > 6 && to < 8, `${from} ${to}`);
});

test("without a figure the axis shows all values", () => {
  const none = curves([NaN], [NaN], [NaN]);
  assert.deepEqual(yRange(extentOf(none, SHARES), [], SHARES), [0, 1]);
  assert.deepEqual(yRange(extentOf(none, NUMBERS), [], NUMBERS), [-20, 60]);
  const history = new History(2);
  history.add([{ ...release(1, [0.5, 0.5]), heard_t: 0 }, { ...release(2, [0.5, 0.5]), heard_t: 2 }]);
  assert.ok(history.rows[0].data.every(Number.isNaN), "one over d is no figure");
  assert.ok(!history.rows[1].data.some(Number.isNaN));
});

/** A stream of texts as the collector describes it. */
const ofTexts = () =>
  withUnit({ terms: { query: "vocabulary", stream: "words", prefixes: [2, 4] }, versions: [{ version: 1, labels: [] }] });
const listing = (t, shares, rest = 0.5) => ({
  ...release(t, Object.values(shares)),
  labels: Object.keys(shares),
  rest: { value: rest, low: rest - 0.1, high: rest + 0.1 },
});

test("texts have a place of their own, and a gap where a release does not list them", () => {
  const stream = ofTexts();
  const history = historyOf(stream);
  const told = [listing(1, {}), listing(2, { b: 0.3 }), listing(3, { a: 0.4, b: 0.2 }), listing(4, { a: 0.1 })];
  assert.equal(history.add(told), 4);
  const [b, a] = [1, 2];
  assert.deepEqual(stream.labels.slice(1), ["b", "a"]);
  const figures = (place) => history.rows.map(({ data }) => Number(data[place].toFixed(4)));
  assert.deepEqual(figures(b), [NaN, 0.3, 0.2, NaN]);
  assert.deepEqual(figures(a), [NaN, NaN, 0.4, 0.1]);
  assert.deepEqual(figures(REST), [0.5, 0.5, 0.5, 0.5]);
  assert.deepEqual(figures(2 * MOST_TEXTS + REST), [0.6, 0.6, 0.6, 0.6]);
  assert.deepEqual(largest(stream, history.rows, 3), [a, b], "never what is not listed");
  assert.deepEqual(largest(stream, history.rows.slice(3), 3), [a]);
  assert.ok(!history.knows(release(5)), "of a stream of labels");
  const older = historyOf(stream);
  older.add([listing(3, { a: 0.4 })]);
  assert.equal(older.add([listing(1, { c: 0.1, b: 0.3 })]), 1, "older ones come later");
  assert.deepEqual(stream.labels.slice(1), ["b", "a", "c"]);
});

test("however many texts strangers think of, so many are held: those that were listed last", () => {
  const stream = ofTexts();
  const history = historyOf(stream);
  history.add([listing(1, { first: 0.5, second: 0.25, chosen: 0.125 })]);
  const [first, , chosen] = [1, 2, 3];
  stream.texts.kept = new Set([chosen]);
  for (let t = 2; t <= MOST_TEXTS - 3; t += 1) history.add([listing(t, { [`text ${t}`]: 0.1 })]);
  assert.equal(stream.labels.length, MOST_TEXTS);
  history.add([listing(MOST_TEXTS, { another: 0.1, second: 0.2 })]);
  assert.equal(stream.labels[first], "another", "it takes the place of the one listed longest ago");
  assert.ok(Number.isNaN(history.rows[0].data[first]), "and none of its figures");
  history.add([listing(MOST_TEXTS + 1, { "one more": 0.1 })]);
  assert.deepEqual([stream.labels[2], stream.labels[chosen]], ["second", "chosen"]);
  assert.equal(stream.labels.indexOf("text 2"), -1);
  assert.equal(stream.labels.length, MOST_TEXTS);
  const texts = new Texts();
  texts.placesOf(Array.from({ length: MOST_TEXTS - 1 }, (_, at) => `late ${at}`), 9, assert.fail);
  assert.deepEqual([...texts.placesOf(["early"], 8, assert.fail)], [-1], "an older one finds no room");
});

test("a text of a stranger stays on its line", () => {
  assert.equal(shownText("a\nb\u0000\u202ec\u2028"), "a·b··c·");
  assert.equal(shownText(""), "(no text)");
  assert.equal(shownText("<b>süß 東京 👩‍👧</b>"), "<b>süß 東京 👩‍👧</b>");
});

const COUNTRY = [{ name: "country", values: ["de", "fr"] }];
const group = (value, values, more = {}) => ({
  ...{ attribute: "country", value, share: 0.5, devices: 50, values, variance: values.map(() => 0), ...more },
});

test("a page shows the whole fleet, or one group of it", () => {
  const versions = [{ version: 1, labels: ["a", "b", "c"] }];
  const history = historyOf({ labels: ["a", "b", "c"], versions, attributes: COUNTRY });
  const groups = [group("de", [0.7, 0.2, 0.1]), group("other", [0.3, 0.4, 0.3], { merged: ["fr", "other"] })];
  history.add([{ ...release(1), groups }, release(2)]);
  const shown = () => history.rows.map(({ data }) => Number(data[0].toFixed(4)));
  assert.deepEqual(shown(), [0.5, 0.5]);
  history.show({ attribute: "country", value: "de" });
  history.add([{ ...release(3), groups: [group("de", [0.6, 0.2, 0.2])] }]);
  assert.deepEqual(shown(), [0.7, NaN, 0.6], "a gap where the group is not shown by itself");
  history.show({ attribute: "country", value: "fr" });
  assert.deepEqual(shown(), [NaN, NaN, NaN]);
  history.show(null);
  assert.deepEqual(shown(), [0.5, 0.5, 0.5]);
  const { merged, share, devices } = history.rows[0].parts.get(partKey({ attribute: "country", value: "other" }));
  assert.deepEqual([merged, share, devices], [["fr", "other"], 0.5, 50]);
});

test("figures of groups are held in as much memory as those of more labels", () => {
  const labels = Array.from({ length: 1000 }, (_, at) => `${at}`);
  const versions = [{ version: 1, labels }];
  const values = Array.from({ length: 31 }, (_, at) => `${at}`);
  const history = historyOf({ labels, versions, attributes: [{ name: "model", values }] });
  assert.ok(history.mostRows * 3 * 1000 * 33 <= 12_000_000, `${history.mostRows} rows`);
  assert.ok(history.page * 1000 * 33 <= 600_000, `${history.page} rows in an answer`);
});
