"use strict";
/* The laws: value, interval and order of all points at any size k, as apiece.Laws has them.

   A family sends the terms of a sum, sum_j u_j f_j(k) over its linear local coordinates u_j, see
   apiece.laws.Family.page_terms, or else curves that were sampled at some sizes. */

/** @param {Report} report */
function makeLaws(report) {
  const { arrays, decay } = report;
  const n = report.ids.length;
  const { at, mean, error, ends: plainEnds, hasError } = report.terms ? curvesOfTerms(report) : sampledCurves(report);
  /* Curves that were sampled come with intervals that are wide enough. */
  const widening = report.terms ? (report.widening ?? 1) : 1;

  /* By how much intervals are wider at a size, as apiece.laws.Beyond has it. */
  function wider(k) {
    const t = Math.log(Math.max(1, k / report.k_range[1])) / Math.log(2.5);
    return Math.sqrt(1 + (widening * widening - 1) * Math.max(t, t * t));
  }

  function ends(i, here) {
    const [low, high] = plainEnds(i, here);
    const factor = wider(here.k);
    if (factor === 1) return [low, high];
    const middle = mean(i, here);
    return [middle + factor * (low - middle), middle + factor * (high - middle)];
  }

  return {
    n,
    mean: (i, k) => mean(i, at(k)),
    /* How fast a value fades at a size: minus the slope of log|psi| against log k. */
    exponent(i, k) {
      if (decay) return arrays[`param_${decay}`][i];
      const step = 1e-4;
      const [below, above] = [this.mean(i, k * Math.exp(-step)), this.mean(i, k * Math.exp(step))];
      return (below - above) / (2 * step * this.mean(i, k));
    },
    interval: (i, k) => ends(i, at(k)),
    /* Fill `value` and the ends of the intervals with all points at one size. */
    evaluate(k, value, low, high) {
      const here = at(k);
      for (let i = 0; i < n; i++) {
        value[i] = mean(i, here);
        [low[i], high[i]] = ends(i, here);
      }
    },
    /* Points that change places with one between two sizes, clearest first, as apiece.uses.crossings
       ranks them: by the weaker end of (difference / its standard error). */
    swaps(point, low, high, count) {
      const best = [];
      const places = [at(low), at(high)];
      const own = places.map((here) => [mean(point, here), error(point, here)]);
      for (let i = 0; i < n; i++) {
        let [clarity, product] = [Infinity, 1];
        for (let end = 0; end < 2; end++) {
          const [one, uncertainty] = own[end];
          const other = mean(i, places[end]);
          const gap = one - other;
          product *= Math.sign(gap);
          const noise = hasError ? Math.hypot(uncertainty, error(i, places[end])) : Math.abs(one) + Math.abs(other);
          clarity = Math.min(clarity, Math.abs(gap) / noise);
        }
        if (product < 0 && clarity > (best.length < count ? 0 : best.at(-1).clarity)) {
          best.push({ point: i, clarity });
          best.sort((a, b) => b.clarity - a.clarity);
          best.length = Math.min(best.length, count);
        }
      }
      return best.map((found) => found.point);
    },
    /* The sizes between two others at which two points are worth the same, rising. */
    crossings(first, second, low, high, steps = 400) {
      const gap = (logK) => this.mean(first, Math.exp(logK)) - this.mean(second, Math.exp(logK));
      const found = [];
      const start = Math.log(low);
      const step = (Math.log(high) - start) / steps;
      for (let s = 0; s < steps; s++) {
        let [a, b] = [start + s * step, start + (s + 1) * step];
        const sign = Math.sign(gap(a));
        if (sign === 0 || sign * gap(b) >= 0) continue;
        for (let halving = 0; halving < 60; halving++) {
          const middle = (a + b) / 2;
          if (sign * gap(middle) > 0) a = middle;
          else b = middle;
        }
        found.push(Math.exp((a + b) / 2));
      }
      return found;
    },
  };
}

/* Curves that are sums of terms. Standard errors are sqrt(g' C g) for the gradient g by the local
   coordinates; coordinates are brought to unit variance and gradients to unit size first, so that no
   number leaves its range. */
function curvesOfTerms(report) {
  const { arrays, parameters, terms, k_ref: kRef, z } = report;
  const n = report.ids.length;
  const p = parameters.length;
  const local = parameters.map((name, j) => arrays[`local_${j}`] ?? arrays[`param_${name}`]);
  const hasError = arrays.cov_00 !== undefined;
  const { spread, correlation } = hasError ? correlations(arrays, n, p) : {};
  const count = terms.length;
  const shapes = terms.map(({ coordinate }) => coordinate ?? -1);
  const isShift = terms.map(({ kind }) => kind === "shift");
  const isLinear = shapes.every((shape) => shape < 0);
  const [gradient, theta, step, towards, root] = [p, p, p, p, p * p].map((length) => new Float64Array(length));
  const directions = directionsOf(p);

  /* What all points share at one size: k, and each term's value if its number is fixed. */
  const at = (k) => ({
    k,
    logs: terms.map(({ kind }) => -Math.log(kind === "relative" ? k / kRef : k)),
    values: terms.map(({ kind, number }) => termAt(k, kind, number)),
  });
  const termAt = (k, kind, number) =>
    kind === "shift" ? 1 / (k + number) : Math.pow(kind === "relative" ? k / kRef : k, -number);

  /* Value at the coordinates theta; its gradient is left in `gradient`. */
  function valueAt(here) {
    let sum = 0;
    for (let a = count; a < p; a++) gradient[a] = 0;
    for (let a = 0; a < count; a++) {
      const shape = shapes[a];
      let factor = here.values[a];
      if (shape >= 0) {
        factor = isShift[a] ? 1 / (here.k + theta[shape]) : Math.exp(theta[shape] * here.logs[a]);
        gradient[shape] += theta[a] * factor * (isShift[a] ? -factor : here.logs[a]);
      }
      gradient[a] = factor;
      sum += theta[a] * factor;
    }
    return sum;
  }

  function mean(i, here) {
    for (let a = 0; a < p; a++) theta[a] = local[a][i];
    return valueAt(here);
  }

  /* Standard error of a value whose gradient is in `gradient`. */
  function errorHere(i) {
    if (!hasError) return NaN;
    let size = 0;
    for (let a = 0; a < p; a++) {
      step[a] = gradient[a] * spread[a][i];
      const length = Math.abs(step[a]);
      if (!(length <= size)) size = length;
    }
    if (size === 0 || Number.isNaN(size)) return size;
    let square = 0;
    for (let a = 0; a < p; a++) {
      const one = step[a] / size;
      for (let b = 0; b < p; b++) square += one * correlation[a * p + b][i] * (step[b] / size);
    }
    return size * Math.sqrt(Math.max(square, 0));
  }

  function error(i, here) {
    mean(i, here);
    return errorHere(i);
  }

  /* Ends of the interval of a point: of a sum, its value plus and minus z standard errors; otherwise
     the least and the largest value on the ellipsoid of its coordinates. */
  function ends(i, here) {
    const middle = mean(i, here);
    if (isLinear || !hasError) {
      const half = z * errorHere(i);
      return [middle - half, middle + half];
    }
    lowerOf(i);
    const found = [Infinity, -Infinity];
    const best = [null, null];
    for (const direction of directions) {
      for (let a = 0; a < p; a++) {
        let off = 0;
        for (let b = 0; b <= a; b++) off += root[a * p + b] * direction[b];
        theta[a] = local[a][i] + z * spread[a][i] * off;
      }
      const value = valueAt(here);
      if (!(value >= found[0])) [found[0], best[0]] = [value, p > 2 ? theta.slice() : null];
      if (!(value <= found[1])) [found[1], best[1]] = [value, p > 2 ? theta.slice() : null];
    }
    if (p > 2) [0, 1].forEach((end) => (found[end] = followed(i, here, end ? 1 : -1, best[end], found[end])));
    return found;
  }

  /* Follow the ellipsoid to where the value is extreme, theta + sign z C g / sqrt(g' C g), half way
     in each step so as not to overshoot. */
  function followed(i, here, sign, start, value) {
    theta.set(start);
    valueAt(here);
    towards.fill(0);
    for (let round = 0; round < 12; round++) {
      const length = errorHere(i);
      if (!(length > 0)) return value;
      for (let a = 0; a < p; a++) gradient[a] = towards[a] + gradient[a] / length;
      const whole = errorHere(i);
      if (!(whole > 0)) return value;
      for (let a = 0; a < p; a++) {
        let sum = 0;
        for (let b = 0; b < p; b++) sum += correlation[a * p + b][i] * step[b];
        towards[a] = gradient[a] / whole;
        theta[a] = local[a][i] + (sign * z * spread[a][i] * sum) / whole;
      }
      const next = valueAt(here);
      if (sign * next > sign * value) value = next;
    }
    return value;
  }

  /* Leave the Cholesky factor of a point's correlations in `root`. */
  function lowerOf(i) {
    for (let a = 0; a < p; a++) {
      for (let b = 0; b <= a; b++) {
        let left = a === b ? 1 : correlation[a * p + b][i];
        for (let c = 0; c < b; c++) left -= root[a * p + c] * root[b * p + c];
        if (a === b) root[a * p + a] = Math.sqrt(Math.max(left, 0));
        else root[a * p + b] = root[b * p + b] > 1e-8 ? Math.max(-1, Math.min(1, left / root[b * p + b])) : 0;
        if (Number.isNaN(left)) root[a * p + b] = NaN;
      }
    }
  }

  return { at, mean, error, ends, hasError };
}

/* Unit vectors in p dimensions: a circle in 64 steps, or axes and diagonals. */
function directionsOf(p) {
  if (p === 2) {
    return Array.from({ length: 64 }, (_, j) => [Math.cos((j * Math.PI) / 32), Math.sin((j * Math.PI) / 32)]);
  }
  const found = [];
  for (let a = 0; a < p; a++) {
    for (const sign of [-1, 1]) {
      found.push(Array.from({ length: p }, (_, j) => (j === a ? sign : 0)));
      for (let b = 0; b < a; b++) {
        for (const other of [-1, 1]) {
          found.push(Array.from({ length: p }, (_, j) => (j === a ? sign : j === b ? other : 0) / Math.SQRT2));
        }
      }
    }
  }
  return found;
}

/* Curves known at sizes that are equally far apart on a log scale: cubic between them. */
/** @param {Report} report */
function sampledCurves(report) {
  const { arrays, curve_k: sizes, z } = report;
  const count = sizes.length;
  const start = Math.log(sizes[0]);
  const width = (Math.log(sizes[count - 1]) - start) / (count - 1);
  const hasError = arrays.curve_low !== undefined;

  const at = (k) => {
    const place = Math.max(0, Math.min(count - 1, (Math.log(k) - start) / width));
    const left = Math.min(count - 2, Math.floor(place));
    return { k, left, share: place - left };
  };

  function read(curves, i, { left, share }) {
    const value = (j) => curves[i * count + j];
    const [y0, y1] = [value(left), value(left + 1)];
    const slope0 = left > 0 ? (y1 - value(left - 1)) / 2 : y1 - y0;
    const slope1 = left + 2 < count ? (value(left + 2) - y0) / 2 : y1 - y0;
    const bend = 2 * (y0 - y1) + slope0 + slope1;
    return y0 + share * (slope0 + share * (3 * (y1 - y0) - 2 * slope0 - slope1 + share * bend));
  }

  const mean = (i, here) => read(arrays.curve_mean, i, here);
  const ends = (i, here) =>
    hasError ? [read(arrays.curve_low, i, here), read(arrays.curve_high, i, here)] : [NaN, NaN];
  const error = (i, here) => {
    const [low, high] = ends(i, here);
    return (high - low) / (2 * z);
  };
  return { at, mean, error, ends, hasError };
}

/* Standard deviations of the local coordinates, and their correlations as rows of a matrix. */
function correlations(arrays, n, p) {
  const spread = [];
  for (let a = 0; a < p; a++) spread.push(arrays[`cov_${a}${a}`].map(Math.sqrt));
  const correlation = [];
  for (let a = 0; a < p; a++) {
    for (let b = 0; b < p; b++) {
      if (b < a) {
        correlation.push(correlation[b * p + a]);
        continue;
      }
      const found = new Float64Array(n);
      const cov = arrays[`cov_${a}${b}`];
      for (let i = 0; i < n; i++) found[i] = cov[i] / (spread[a][i] || 1) / (spread[b][i] || 1);
      correlation.push(found);
    }
  }
  return { spread, correlation };
}

/* Order of numbers, rising or falling; equal ones keep their order, NaN comes last.
   A radix sort, 16 bits at a time, of the numbers' bits: with the sign bit flipped, and all bits of
   negative numbers, these rise as the numbers do. */
function orderOf(keys, falling = false) {
  const n = keys.length;
  const copy = new Float64Array(n);
  for (let i = 0; i < n; i++) copy[i] = keys[i] + 0; // -0 becomes 0
  const words = new Uint32Array(copy.buffer);
  const turn = falling ? 0xffffffff : 0;
  for (let i = 0; i < n; i++) {
    if (Number.isNaN(copy[i])) {
      words[2 * i] = words[2 * i + 1] = 0xffffffff;
    } else {
      const isNegative = words[2 * i + 1] >>> 31;
      words[2 * i] ^= (isNegative ? 0xffffffff : 0) ^ turn;
      words[2 * i + 1] ^= (isNegative ? 0xffffffff : 0x80000000) ^ turn;
    }
  }
  let order = new Uint32Array(n);
  let next = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  const places = new Uint32Array(65537);
  for (let pass = 0; pass < 4; pass++) {
    const word = pass >> 1;
    const shift = (pass & 1) * 16;
    places.fill(0);
    for (let i = 0; i < n; i++) places[((words[2 * i + word] >>> shift) & 0xffff) + 1]++;
    for (let c = 0; c < 65536; c++) places[c + 1] += places[c];
    for (let j = 0; j < n; j++) {
      const i = order[j];
      next[places[(words[2 * i + word] >>> shift) & 0xffff]++] = i;
    }
    [order, next] = [next, order];
  }
  return order;
}

/* Positions of texts in their natural order, so that texts sort as numbers do. */
function ranksOf(texts) {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const order = Array.from(texts.keys()).sort((a, b) => collator.compare(texts[a], texts[b]));
  const ranks = new Float64Array(texts.length);
  order.forEach((i, rank) => (ranks[i] = rank));
  return ranks;
}

/* The points nearest to one of them, nearest first, in the report's space. */
function nearestTo(report, point, count) {
  const { near, near_known: isKnown } = report.arrays;
  const width = report.near.width;
  if (!isKnown[point]) return [];
  const best = [];
  for (let i = 0; i < isKnown.length; i++) {
    if (i === point || !isKnown[i]) continue;
    let distance = 0;
    const limit = best.length < count ? Infinity : best[count - 1].distance;
    for (let j = 0; j < width && distance < limit; j++) {
      const apart = near[i * width + j] - near[point * width + j];
      distance += apart * apart;
    }
    if (distance >= limit) continue;
    let place = best.length;
    while (place > 0 && best[place - 1].distance > distance) place--;
    best.splice(place, 0, { point: i, distance });
    best.length = Math.min(best.length, count);
  }
  return best.map((found) => found.point);
}
