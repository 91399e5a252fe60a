"use strict";
/* The laws: value, standard error and order of all points at any size k, as apiece.Laws has them.

   power   psi_k = c k^-alpha, local coordinates (psi_ref, alpha)
   series  psi_k = sum_j a_j k^(-j/2), local coordinates the a_j
   ridge   psi_k = sum_j b_j / (k + shift_j), local coordinates the b_j
   blend   terms of both

   Standard errors are sqrt(g' C g) for the gradient g by the local coordinates; coordinates are
   brought to unit variance and gradients to unit size first, so that no number leaves its range. */

function makeLaws(report) {
  const { arrays, parameters, k_ref: kRef, z } = report;
  const p = parameters.length;
  const n = report.ids.length;
  const params = parameters.map((name) => arrays[`param_${name}`]);
  const isPower = report.family === "power";
  const term = isPower ? null : parameters.map((name) => [name[0], Number(name.slice(1))]);
  const termAt = (k, [letter, j]) => (letter === "b" ? 1 / (k + j) : Math.pow(k, -j / 2));
  const height = isPower ? params[0].map((c, i) => c * Math.pow(kRef, -params[1][i])) : null;
  const hasCov = arrays.cov_00 !== undefined;
  const { spread, correlation } = hasCov ? correlations(arrays, n, p) : {};
  const gradient = new Float64Array(p);
  const circle = Array.from({ length: 64 }, (_, j) => (j * Math.PI) / 32).map((angle) => [
    Math.cos(angle),
    Math.sin(angle),
  ]);

  /* What all points share at one size: the terms of a sum, or how far it is from k_ref. */
  const termsAt = (k) =>
    isPower ? [k / kRef, Math.log(k / kRef)] : term.map((j) => termAt(k, j));

  /* Value of a point; its gradient by the local coordinates is left in `gradient`. */
  function meanOf(i, terms) {
    if (isPower) {
      gradient[0] = Math.pow(terms[0], -params[1][i]);
      const mean = height[i] * gradient[0];
      gradient[1] = -mean * terms[1];
      return mean;
    }
    let sum = 0;
    for (let a = 0; a < p; a++) {
      gradient[a] = terms[a];
      sum += params[a][i] * terms[a];
    }
    return sum;
  }

  /* Standard error of the value that was computed last, for the same point. */
  function errorOf(i) {
    if (!hasCov) return NaN;
    let size = 0;
    for (let a = 0; a < p; a++) {
      gradient[a] *= spread[a][i];
      const length = Math.abs(gradient[a]);
      if (!(length <= size)) size = length;
    }
    if (size === 0 || Number.isNaN(size)) return size;
    let square = 0;
    for (let a = 0; a < p; a++) {
      const one = gradient[a] / size;
      for (let b = 0; b < p; b++) square += one * correlation[a * p + b][i] * (gradient[b] / size);
    }
    return size * Math.sqrt(Math.max(square, 0));
  }

  /* Ends of the interval of a point: of a sum, its value plus and minus z standard errors; of a
     power law, the least and the largest value on the ellipse of its coordinates. */
  function endsOf(i, terms) {
    const mean = meanOf(i, terms);
    const half = z * errorOf(i);
    if (!isPower || !hasCov) return [mean - half, mean + half];
    const [toHeight, toAlpha] = [z * spread[0][i], z * spread[1][i]];
    const [tilt, rest] = [correlation[1][i], Math.sqrt(Math.max(1 - correlation[1][i] ** 2, 0))];
    let [low, high] = [Infinity, -Infinity];
    for (const [along, across] of circle) {
      const alpha = params[1][i] + toAlpha * (tilt * along + rest * across);
      const psi = (height[i] + toHeight * along) * Math.exp(-alpha * terms[1]);
      low = Math.min(low, psi);
      high = Math.max(high, psi);
    }
    return [low, high];
  }

  return {
    n,
    mean: (i, k) => meanOf(i, termsAt(k)),
    /* How fast a value fades at a size: minus the slope of log|psi| against log k; alpha of a power. */
    exponent(i, k) {
      if (isPower) return params[1][i];
      const step = 1e-4;
      const [below, above] = [this.mean(i, k * Math.exp(-step)), this.mean(i, k * Math.exp(step))];
      return (below - above) / (2 * step * this.mean(i, k));
    },
    interval: (i, k) => endsOf(i, termsAt(k)),
    /* Fill `value` and the ends of the intervals with all points at one size. */
    evaluate(k, value, low, high) {
      const terms = termsAt(k);
      for (let i = 0; i < n; i++) {
        value[i] = meanOf(i, terms);
        [low[i], high[i]] = endsOf(i, terms);
      }
    },
    /* Points that change places with one between two sizes, clearest first, as apiece.analysis.crossings
       ranks them: by the weaker end of (difference / its standard error). */
    swaps(point, low, high, count) {
      const best = [];
      const terms = [termsAt(low), termsAt(high)];
      const own = terms.map((at) => [meanOf(point, at), errorOf(point)]);
      for (let i = 0; i < n; i++) {
        let [clarity, product] = [Infinity, 1];
        for (let end = 0; end < 2; end++) {
          const [mean, error] = own[end];
          const other = meanOf(i, terms[end]);
          const gap = mean - other;
          product *= Math.sign(gap);
          const noise = hasCov ? Math.hypot(error, errorOf(i)) : Math.abs(mean) + Math.abs(other);
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
