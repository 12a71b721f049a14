/** The parts of the page that put time into pictures: columns, fingers, and what was firing when. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Alerts } from "../../../src/ldpstream/collector/page/app/alerts.js";
import { Columns, niceScale } from "../../../src/ldpstream/collector/page/app/columns.js";
import { thinned } from "../../../src/ldpstream/collector/page/app/history.js";
import { moved } from "../../../src/ldpstream/collector/page/app/touch.js";

const row = (t, value = t) => ({
  t,
  fresh: t % 2 === 0,
  missed: t === 7,
  data: Float32Array.of(value, 1, value - 1, 0, value + 1, 2),
});
const rows = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => row(from + at));

test("columns are means over the same timestamps wherever the view begins", () => {
  const columns = new Columns(2);
  const whole = columns.of(rows(1, 100), 26);
  assert.equal(columns.size, 4);
  assert.equal(whole.columns.length, 26);
  assert.deepEqual([...whole.columns[1].means], [5.5, 1]); // t 4 to 7
  assert.deepEqual([whole.columns[1].fresh, whole.columns[1].missed], [true, true]);
  const later = columns.of(rows(5, 104), 26);
  assert.equal(later.first, 1);
  assert.equal(later.columns[5], whole.columns[6], "kept, not added up again");
  assert.deepEqual([...later.columns[0].means], [6, 1], "of fewer timestamps now");
  const cut = columns.of(rows(4, 98), 26); // its last column ends earlier: 96, 97, 98
  assert.equal(columns.size, 4);
  assert.equal(cut.columns.at(-1).means[0], 97);
  assert.equal(columns.of(rows(5, 99), 26).columns.at(-1).means[0], 97.5);
});

test("a column that grows is added up anew, and a gap has no column", () => {
  const columns = new Columns(2);
  const before = columns.of(rows(1, 9), 100).columns[8];
  assert.equal(columns.of(rows(1, 9), 100).columns[8], before);
  const { columns: found } = columns.of([...rows(1, 3), ...rows(6, 7)], 100);
  assert.deepEqual(
    found.map((one) => one?.means[0] ?? null),
    [1, 2, 3, null, null, 6, 7],
  );
});

test("a scale holds what it is for, and not much more", () => {
  for (const most of [0.01, 0.0371, 0.45, 0.99, 1]) {
    assert.ok(niceScale(most) >= most * 0.999);
    assert.ok(niceScale(most) <= most * 1.3);
  }
});

test("bands are thinned out to their outer ends", () => {
  const { curves } = thinned(rows(1, 100), [0, 2, 4], 20, [0, -1, 1]);
  const at = 6; // a whole bucket: t 20 to 29 or so
  const [least, most] = [curves[0][at], curves[0][at + 1]];
  assert.deepEqual([curves[1][at], curves[1][at + 1]], [least - 1, least - 1]);
  assert.deepEqual([curves[2][at], curves[2][at + 1]], [most + 1, most + 1]);
});

test("what a finger holds stays under it", () => {
  const [area, range] = [{ left: 50, width: 400 }, { from: 100, to: 300 }];
  const at = (x) => range.from + ((x - area.left) / area.width) * (range.to - range.from);
  const hold = (...xs) => xs.map((x) => ({ x, t: at(x) }));
  const under = (x, { from, to }) => from + ((x - area.left) / area.width) * (to - from);

  const panned = moved(hold(200), [260], area, range);
  assert.ok(Math.abs(under(260, panned) - at(200)) < 1e-9);
  assert.ok(Math.abs(panned.to - panned.from - 200) < 1e-9);

  const pinched = moved(hold(200, 300), [150, 350], area, range);
  assert.ok(Math.abs(under(150, pinched) - at(200)) < 1e-9);
  assert.ok(Math.abs(under(350, pinched) - at(300)) < 1e-9);
  assert.ok(Math.abs(pinched.to - pinched.from - 100) < 1e-9);
  assert.equal(moved(hold(200, 300), [250, 252], area, range), null, "fingers that touch");
  assert.equal(moved(hold(200, 300), [300, 200], area, range), null, "fingers that crossed");
});

test("times of firing are joined where they overlap, and an unknown end is not made up", () => {
  const change = (t, id, state) => ({ t, id, state });
  const spans = Object.getOwnPropertyDescriptor(Alerts.prototype, "spans").get;
  const of = (firing, ...changes) => spans.call({ changes, firing });
  const story = [
    change(3, "a", "firing"),
    change(5, "b", "firing"),
    change(6, "a", "resolved"),
    change(9, "b", "resolved"),
    change(12, "a", "firing"),
  ];
  assert.deepEqual(of(1, ...story), [
    { from: 3, to: 9 },
    { from: 12, to: null },
  ]);
  assert.deepEqual(of(0, ...story), [{ from: 3, to: 9 }]);
  assert.deepEqual(of(0, change(4, "a", "resolved")), []);
});
