import { describe, expect, it } from "vitest";
import { Heights } from "../../src/view/timeline/heights";

const keys = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `k${from + index}`);
const list = (from: number, to: number, guess = 100) => {
  const heights = new Heights();
  heights.arrange(keys(from, to), () => guess);
  return heights;
};

describe("a windowed list", () => {
  it("stands on guesses until it is measured", () => {
    const heights = list(1, 10);
    expect(heights.total).toBe(1000);
    heights.measure("k1", 40);
    expect([heights.top(1), heights.total]).toEqual([40, 940]);
  });
  it("draws what fills the view and a little more", () => {
    expect(list(1, 20_000).range(500_000, 800, 300)).toEqual({ start: 4997, end: 5012 });
    expect(list(1, 3).range(0, 800, 300)).toEqual({ start: 0, end: 3 });
    expect(list(1, 0).range(0, 800, 300)).toEqual({ start: 0, end: 0 });
  });
  it("keeps a reader's place when something above is measured", () => {
    const heights = list(1, 100);
    const anchor = heights.anchor(5_050);
    expect(anchor).toEqual({ key: "k51", offset: 50 });
    heights.measure("k3", 300);
    expect(anchor && heights.find(anchor)).toBe(5_250);
  });
  it("keeps a reader's place when older items come in front", () => {
    const heights = list(51, 100);
    heights.measure("k51", 10);
    const anchor = heights.anchor(15);
    heights.arrange(keys(1, 100), () => 100);
    expect(anchor && heights.find(anchor)).toBe(50 * 100 + 15);
    expect(heights.top(51)).toBe(50 * 100 + 10);
  });
  it("forgets the place of an item that is gone", () => {
    const heights = list(1, 10);
    heights.arrange(keys(5, 10), () => 100);
    expect(heights.find({ key: "k1", offset: 0 })).toBeNull();
    expect(heights.indexOf("k5")).toBe(0);
  });
  it("grows at its end without reckoning all of it again", () => {
    const heights = list(1, 10);
    expect(heights.total).toBe(1000);
    heights.arrange(keys(1, 12), () => 100);
    expect(heights.total).toBe(1200);
  });
  it("says only what changed", () => {
    const heights = list(1, 2);
    expect([heights.measure("k1", 50), heights.measure("k1", 50.2), heights.measure("k1", 60)]).toEqual([
      true,
      false,
      true,
    ]);
  });
});
