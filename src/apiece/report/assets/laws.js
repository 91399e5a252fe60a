"use strict";
/* The laws: value, standard error and order of all points at any size k, as apiece.Laws has them.

   power   psi_k = c k^-alpha, local coordinates (psi_ref, alpha)
   series  psi_k = sum_j a_j k^(-j/2), local coordinates the a_j

   Standard errors are sqrt(g' C g) for the gradient g by the local coordinates; coordinates are
   brought to unit variance and gradients to unit size first, so that no number leaves its range. */

function makeLaws(report) {
  const { arrays, parameters, k_ref: kRef, z } = report;
  const p = parameters.length;
  const n = report.ids.length;
  const params = parameters.map((name) => arrays[`param_${name}`]);
  const isPower = report.family === "power";
  const exponents = isPower ? null : parameters.map((name) => -Number(name.slice(1)) / 2);
  const cov = [];
  for (let a = 0; a < p; a++) {
    for (let b = 0; b < p; b++) cov.push(arrays[`cov_${Math.min(a, b)}${Math.max(a, b)}`]);
  }
  const hasCov = cov[0] !== undefined;
  const gradient = new Float64Array(p);
  const spread = new Float64Array(p);

  /* The part of a curve that all points share at one size. */
  const basisAt = (k) => (isPower ? null : exponents.map((power) => Math.pow(k, power)));

  function meanOf(i, k, basis) {
    if (isPower) return params[0][i] * Math.pow(k, -params[1][i]);
    let sum = 0;
    for (let a = 0; a < p; a++) sum += params[a][i] * basis[a];
    return sum;
  }

  function errorOf(i, k, basis, mean) {
    if (!hasCov) return NaN;
    if (isPower) {
      gradient[0] = Math.pow(k / kRef, -params[1][i]);
      gradient[1] = -mean * Math.log(k / kRef);
    } else {
      for (let a = 0; a < p; a++) gradient[a] = basis[a];
    }
    let size = 0;
    for (let a = 0; a < p; a++) {
      spread[a] = Math.sqrt(cov[a * p + a][i]);
      gradient[a] *= spread[a];
      const length = Math.abs(gradient[a]);
      if (!(length <= size)) size = length;
    }
    if (size === 0 || Number.isNaN(size)) return size;
    let square = 0;
    for (let a = 0; a < p; a++) {
      for (let b = 0; b < p; b++) {
        const correlation = cov[a * p + b][i] / (spread[a] || 1) / (spread[b] || 1);
        square += (gradient[a] / size) * correlation * (gradient[b] / size);
      }
    }
    return size * Math.sqrt(Math.max(square, 0));
  }

  return {
    n,
    mean(i, k) {
      return meanOf(i, k, basisAt(k));
    },
    error(i, k) {
      const basis = basisAt(k);
      return errorOf(i, k, basis, meanOf(i, k, basis));
    },
    interval(i, k) {
      const mean = this.mean(i, k);
      const half = z * this.error(i, k);
      return [mean - half, mean + half];
    },
    /* Fill `value` and `half` (half the interval) with all points at one size. */
    evaluate(k, value, half) {
      const basis = basisAt(k);
      for (let i = 0; i < n; i++) {
        value[i] = meanOf(i, k, basis);
        half[i] = z * errorOf(i, k, basis, value[i]);
      }
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
