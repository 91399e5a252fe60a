"use strict";
/* Charts, drawn by uPlot on canvas in the colours of the page. */

const CHART_HEIGHT = 260;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/* A number for people: three digits, a true minus sign, powers of ten where it must be. Not for exports. */
function short(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(digits));
  const text =
    size >= 1e4 && size < 1e9
      ? whole(rounded)
      : size >= 1e-4 && size < 1e4
        ? String(rounded)
        : value.toExponential(digits - 1);
  return text.replaceAll("-", "−").replace("e+", "e");
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const whole = (value) => grouped.format(value);

/* A number where there is little room: two digits, 260M instead of 260,000,000. */
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 2 });
const brief = (value) =>
  Math.abs(value) >= 1e5 ? compact.format(value).replace("-", "−") : short(value, 2);

function axis(label, more = {}) {
  return {
    label,
    stroke: () => colour("quiet"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 20,
    size: 34,
    ...more,
  };
}

/* Marks of a log axis: what begins with 1, or also with 2 and 5, or with any digit, as room allows. */
const logMarks = {
  splits(u, index, low, high) {
    const room = (index === 0 ? u.width / 110 : u.height / 60) / Math.log10(high / low);
    const firsts = room > 7 ? [1, 2, 3, 4, 5, 6, 8] : room > 1.8 ? [1, 2, 5] : [1];
    const marks = [];
    for (let decade = Math.floor(Math.log10(low)); 10 ** decade <= high; decade++) {
      marks.push(...firsts.map((first) => first * 10 ** decade));
    }
    return marks.filter((mark) => mark >= low && mark <= high);
  },
  filter: (u, splits) => splits,
};

/* Marks of a scale that is linear about zero and logarithmic beyond: zero and powers of ten. */
const decadeMarks = {
  splits(u, index, low, high) {
    const first = Math.ceil(Math.log10(u.scales[u.axes[index].scale].asinh));
    const last = Math.floor(Math.log10(Math.max(-low, high)));
    const powers = [];
    for (let power = Math.min(first, last); power <= last; power++) powers.push(10 ** power);
    return [...powers.map((v) => -v).reverse(), 0, ...powers].filter((v) => v >= low && v <= high);
  },
  filter: (u, splits) => splits,
  grid: { stroke: () => colour("line"), width: 1 },
  ticks: { show: false },
};

const sizeAxis = (label = "dataset size k") =>
  axis(label, {
    values: (u, splits) => splits.map((k) => (k === null || k < 1 ? "" : k < 1e6 ? whole(k) : short(k, 2))),
    ...logMarks,
  });

const valueAxis = (label) =>
  axis(label, { size: 62, values: (u, splits) => splits.map((v) => (v === null ? "" : brief(v))) });

/* Put a chart into its place, in the place's width from then on. */
function mount(host, options, data) {
  const width = () => Math.max(200, host.clientWidth);
  const chart = new uPlot(
    { width: width(), height: CHART_HEIGHT, legend: { show: false }, ...options },
    data,
    host,
  );
  const watcher = new ResizeObserver(() => {
    if (width() !== chart.width) chart.setSize({ width: width(), height: chart.height });
  });
  watcher.observe(host);
  return {
    chart,
    redraw: () => chart.redraw(true, true),
    destroy() {
      watcher.disconnect();
      chart.destroy();
    },
  };
}

/* Paint inside the plotting area, in canvas pixels. */
function paint(u, work) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.setLineDash([]);
  work(ctx, (x) => u.valToPos(x, "x", true), (y) => u.valToPos(y, "y", true), devicePixelRatio);
  ctx.restore();
}

/* Means with their standard errors: up for helpful, down for harmful, a disc where that means nothing. */
function paintMeans(ctx, x, y, ratio, { k, mean, error, stroke, shape }) {
  ctx.strokeStyle = ctx.fillStyle = stroke;
  ctx.lineWidth = 1.2 * ratio;
  for (let i = 0; i < k.length; i++) {
    if (!Number.isFinite(mean[i])) continue;
    const [left, top] = [x(k[i]), y(mean[i])];
    ctx.beginPath();
    ctx.moveTo(left, y(mean[i] - error[i]));
    ctx.lineTo(left, y(mean[i] + error[i]));
    ctx.stroke();
    marker(ctx, left, top, 3.4 * ratio, shape);
    ctx.fill();
  }
}

function marker(ctx, x, y, size, shape) {
  ctx.beginPath();
  if (shape === "down") {
    ctx.moveTo(x - size, y - size * 0.8);
    ctx.lineTo(x + size, y - size * 0.8);
    ctx.lineTo(x, y + size);
    ctx.closePath();
  } else {
    ctx.arc(x, y, size, 0, 2 * Math.PI);
  }
}

function logSpaced(low, high, count) {
  const step = Math.log(high / low) / (count - 1);
  return Array.from({ length: count }, (_, i) => low * Math.exp(i * step));
}

/* Curves of one or two points: solid where sampled, dashed beyond, with intervals and samples.
   Each curve is { mean(k), interval(k), samples: {k, delta}, means: {k, mean, error}, stroke, shape };
   `at()` is the size that the slider shows; `mark` moves the line there, without drawing anew. */
function curveChart(host, { curves, kRange, kReach, label, at, isLog }) {
  const inside = (k) => k >= kRange[0] * 0.999 && k <= kRange[1] * 1.001;
  const sizes = [...logSpaced(...kReach, 160), ...kRange].sort((a, b) => a - b);
  const data = [sizes];
  const series = [{}];
  const bands = [];
  for (const { mean, interval, stroke } of curves) {
    const ends = sizes.map(interval);
    const first = series.length;
    const known = (values) => values.map((v) => (Number.isFinite(v) ? v : null));
    data.push(known(ends.map((e) => e[1])), known(ends.map((e) => e[0])));
    data.push(sizes.map((k) => (inside(k) ? mean(k) : null)), sizes.map((k) => mean(k)));
    const bare = { points: { show: false }, pxAlign: 0 };
    const hidden = { ...bare, stroke: "transparent", width: 0 };
    series.push(hidden, { ...hidden });
    series.push({ ...bare, stroke, width: 2.4 });
    series.push({ ...bare, stroke, width: 1.4, dash: [5, 5] });
    bands.push({ series: [first, first + 1], fill: stroke + "26" });
  }
  const shown = range(curves, kRange, kReach, sizes);
  const options = {
    series,
    bands,
    scales: {
      x: { time: false, distr: 3, range: [kReach[0], kReach[1]] },
      y: isLog ? { distr: 4, asinh: smallest(curves, kReach), range: shown } : { range: shown },
    },
    axes: [sizeAxis(), { ...valueAxis(label), ...(isLog ? decadeMarks : {}) }],
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    hooks: {
      drawAxes: [
        (u) =>
          paint(u, (ctx, x, y) => {
            ctx.fillStyle = colour("wash");
            ctx.fillRect(x(kRange[0]), u.bbox.top, x(kRange[1]) - x(kRange[0]), u.bbox.height);
            ctx.strokeStyle = colour("quiet");
            ctx.beginPath();
            ctx.moveTo(u.bbox.left, y(0));
            ctx.lineTo(u.bbox.left + u.bbox.width, y(0));
            ctx.stroke();
          }),
      ],
      draw: [
        (u) =>
          paint(u, (ctx, x, y, ratio) => {
            for (const { samples, means, stroke, shape } of curves) {
              ctx.fillStyle = stroke + "40";
              for (let i = 0; i < samples.k.length; i++) {
                ctx.fillRect(x(samples.k[i]) - ratio, y(samples.delta[i]) - ratio, 2 * ratio, 2 * ratio);
              }
              paintMeans(ctx, x, y, ratio, { ...means, stroke, shape });
            }
          }),
        () => mark(),
      ],
    },
  };
  const line = element("div", { className: "at" });
  let made = null;
  function mark() {
    if (made) line.style.left = `${made.chart.valToPos(at(), "x")}px`;
  }
  made = mount(host, options, data);
  made.chart.over.append(line);
  mark();
  return { ...made, mark };
}

/* What the value axis must hold: curves, intervals where sampled, means; not every sample. */
function range(curves, kRange, kReach, sizes) {
  const values = [0];
  for (const { mean, interval, means } of curves) {
    for (const k of sizes) {
      if (k >= kRange[0]) values.push(mean(k));
      if (k >= kRange[0] && k <= kRange[1]) values.push(...interval(k));
    }
    means.mean.forEach((m, i) => values.push(m - means.error[i], m + means.error[i]));
  }
  const finite = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const pad = 0.06 * (high - low) || 1e-9;
  return [low - pad, high + pad];
}

function smallest(curves, kReach) {
  const sizes = curves.map(({ mean }) => Math.abs(mean(kReach[1]))).filter((v) => v > 0);
  return Math.max(Math.min(...sizes), 1e-12);
}

/* Mean loss by size with its standard error, and the aggregate law through it if there is one:
   solid where sampled, dashed beyond, with its interval. */
function lossChart(host, loss, label) {
  const stroke = colour("helps");
  const bare = { points: { show: false }, pxAlign: 0 };
  let [data, series, bands] = [[loss.k, loss.mean], [{}, { ...bare, stroke: colour("line"), width: 1.8 }], []];
  if (loss.curve) {
    const inside = (value, i) => (loss.curve_k[i] <= loss.k_range[1] ? value : null);
    data = [loss.curve_k, loss.high, loss.low, loss.curve.map(inside), loss.curve];
    const end = { ...bare, stroke: "transparent", width: 0 };
    series = [{}, end, { ...end }, { ...bare, stroke, width: 2.4 }, { ...bare, stroke, width: 1.4, dash: [5, 5] }];
    bands = [{ series: [1, 2], fill: stroke + "26" }];
  }
  const sizes = data[0];
  const options = {
    height: 190,
    series,
    bands,
    scales: { x: { time: false, distr: 3, range: [sizes[0] / 1.1, sizes.at(-1) * 1.1] } },
    axes: [sizeAxis(), valueAxis(label)],
    cursor: { show: false },
    hooks: {
      draw: [
        (u) =>
          paint(u, (ctx, x, y, ratio) =>
            paintMeans(ctx, x, y, ratio, { ...loss, stroke }),
          ),
      ],
    },
  };
  return mount(host, options, data);
}

/* How the fits settle as contributions arrive. */
function historyChart(host, history) {
  const stroke = colour("helps");
  const options = {
    height: 150,
    series: [{}, { stroke, width: 1.8, points: { show: true, size: 6, fill: stroke } }],
    scales: { x: { time: false }, y: { range: (u, low, high) => [0, (high || 1) * 1.1] } },
    axes: [axis("contributions a point", { values: (u, s) => s.map((v) => short(v)) }), valueAxis("")],
    cursor: { show: false },
  };
  const data = [history.map((h) => h.samples), history.map((h) => h.relative_error)];
  return mount(host, options, data);
}
