/** What the Node tests share: the vectors, a scripted source, and exact distributions. */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Fraction } from "./inside.js";

export const vectors = JSON.parse(
  readFileSync(new URL("../vectors/vectors.json", import.meta.url), "utf8"),
);

/** The source that vectors/make.py describes. */
export class Scripted {
  constructor(seed) {
    this.seed = seed;
    this.asked = 0;
  }

  next() {
    const digest = createHash("sha256").update(`${this.seed} ${this.asked}`).digest("hex");
    this.asked += 1;
    return BigInt(`0x${digest}`);
  }

  coin(favour, total) {
    return this.next() % total < favour;
  }

  below(bound) {
    return this.next() % bound;
  }
}

/** A source that follows given answers, then answers 0 and remembers the roads not taken. */
class Path {
  constructor(answers) {
    this.answers = answers;
    this.step = 0;
    this.siblings = [];
    this.probability = new Fraction(1n);
  }

  coin(favour, total) {
    if (favour === 0n || favour === total) return favour === total;
    const heads = this.answer(2n) === 1n;
    this.probability = this.probability.times(new Fraction(heads ? favour : total - favour, total));
    return heads;
  }

  below(bound) {
    this.probability = this.probability.times(new Fraction(1n, bound));
    return this.answer(bound);
  }

  answer(choices) {
    if (this.step === this.answers.length) {
      for (let other = 1n; other < choices; other += 1n) {
        this.siblings.push([...this.answers, other]);
      }
      this.answers = [...this.answers, 0n];
    }
    this.step += 1;
    return this.answers[this.step - 1];
  }
}

/** Pr[outcome] for each outcome of `draw`, exactly, by running it under every possible draw. */
export function distribution(draw) {
  const outcomes = new Map();
  const unexplored = [[]];
  while (unexplored.length) {
    const path = new Path(unexplored.pop());
    const outcome = draw(path);
    outcomes.set(outcome, (outcomes.get(outcome) ?? new Fraction(0n)).plus(path.probability));
    unexplored.push(...path.siblings);
  }
  return outcomes;
}
