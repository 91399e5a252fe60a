"use strict";
/* All points in a plane, and the region of it whose points are listed. */

/* All points in a plane; dragging selects a region, a click the nearest point.
   `pick` is { x, y, names, isHelpful(i), isListed(i), xLog, yLog, asinh }. */
function planeChart(host, { pick, marked, onRegion, onPoint }) {
  const { x: xs, y: ys } = pick;
  const n = xs.length;
  const draw = (u) =>
    paint(u, (ctx, toX, toY, ratio) => {
      const size = (n > 20000 ? 1.5 : n > 2000 ? 2.5 : 3.5) * ratio;
      const layers = [
        [false, false, colour("faint")],
        [true, true, colour("helps")],
        [true, false, colour("harms")],
      ];
      ctx.globalAlpha = n > 20000 ? 0.45 : 0.7;
      for (const [isListed, isHelpful, fill] of layers) {
        ctx.fillStyle = fill;
        ctx.beginPath();
        for (let i = 0; i < n; i++) {
          if (!Number.isFinite(xs[i] + ys[i]) || pick.isListed(i) !== isListed) continue;
          if (isListed && pick.isHelpful(i) !== isHelpful) continue;
          const [left, top] = [toX(xs[i]), toY(ys[i])];
          if (n > 2000) ctx.rect(left - size / 2, top - size / 2, size, size);
          else if (isListed && !isHelpful) triangle(ctx, left, top, size * 1.15);
          else disc(ctx, left, top, size);
        }
        ctx.fill();
      }
      ctx.globalAlpha = 1;
      ctx.lineWidth = 2 * ratio;
      ctx.strokeStyle = colour("ink");
      for (const i of marked()) {
        marker(ctx, toX(xs[i]), toY(ys[i]), 6 * ratio);
        ctx.stroke();
      }
    });
  const ends = (values, isLog) => {
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      if (!Number.isFinite(xs[i] + ys[i])) continue;
      low = Math.min(low, values[i]);
      high = Math.max(high, values[i]);
    }
    if (low > high) return isLog ? [0.1, 10] : [-1, 1];
    if (isLog) return [low / 1.5, high * 1.5];
    if (pick.asinh) return [low - 0.4 * Math.abs(low), high + 0.4 * Math.abs(high)];
    const pad = 0.05 * (high - low) || 1;
    return [low - pad, high + pad];
  };
  const scale = (values, isLog) => {
    const fixed = { time: false, range: ends(values, isLog) };
    if (isLog) return { ...fixed, distr: 3 };
    return pick.asinh ? { ...fixed, distr: 4, asinh: pick.asinh } : fixed;
  };
  const options = {
    mode: 2,
    height: 300,
    series: [null, { facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }], paths: () => null }],
    scales: { x: scale(xs, pick.xLog), y: scale(ys, pick.yLog) },
    axes: [
      { ...valueAxis(pick.names[0]), size: 34, ...(pick.asinh ? decadeMarks : {}) },
      { ...valueAxis(pick.names[1]), ...(pick.yLog ? logMarks : {}), ...(pick.asinh ? decadeMarks : {}) },
    ],
    cursor: { drag: { x: true, y: true, setScale: false, uni: 8 }, points: { show: false } },
    hooks: {
      draw: [draw],
      setSelect: [
        (u) => {
          const { left, top, width, height } = u.select;
          if (width < 4 || height < 4) return;
          const [x1, x2] = [left, left + width].map((v) => u.posToVal(v, "x"));
          const [y2, y1] = [top, top + height].map((v) => u.posToVal(v, "y"));
          onRegion({ x: [x1, x2], y: [y1, y2] });
        },
      ],
    },
  };
  const made = mount(host, options, [null, [xs, ys]]);
  drawByTouch(made.chart, () => host.classList.contains("drawing"));
  made.chart.over.addEventListener("click", (event) => {
    const box = made.chart.over.getBoundingClientRect();
    const found = closest(made.chart, pick, event.clientX - box.left, event.clientY - box.top);
    if (found >= 0 && made.chart.select.width < 4) onPoint(found);
  });
  return made;
}

/* A finger draws a region, as a mouse does anyway, while `isDrawing`; else it scrolls the page. */
function drawByTouch(chart, isDrawing) {
  let from = null;
  const place = (event) => {
    const box = chart.over.getBoundingClientRect();
    const within = (value, size) => Math.max(0, Math.min(size, value));
    return [within(event.clientX - box.left, box.width), within(event.clientY - box.top, box.height)];
  };
  const select = (event, isDone) => {
    if (!from) return;
    const to = place(event);
    const [left, top] = [0, 1].map((i) => Math.min(from[i], to[i]));
    const [width, height] = [0, 1].map((i) => Math.abs(from[i] - to[i]));
    chart.setSelect({ left, top, width, height }, isDone);
    if (isDone) from = null;
  };
  chart.over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" || !isDrawing()) return;
    from = place(event);
    chart.over.setPointerCapture(event.pointerId);
  });
  chart.over.addEventListener("pointermove", (event) => select(event, false));
  chart.over.addEventListener("pointerup", (event) => select(event, true));
  chart.over.addEventListener("pointercancel", () => (from = null));
}

function closest(u, pick, left, top, reach = 14) {
  let [best, found] = [reach * reach, -1];
  for (let i = 0; i < pick.x.length; i++) {
    if (!Number.isFinite(pick.x[i] + pick.y[i]) || !pick.isListed(i)) continue;
    const dx = u.valToPos(pick.x[i], "x") - left;
    const dy = u.valToPos(pick.y[i], "y") - top;
    if (dx * dx + dy * dy < best) [best, found] = [dx * dx + dy * dy, i];
  }
  return found;
}

function disc(ctx, x, y, size) {
  ctx.moveTo(x + size, y);
  ctx.arc(x, y, size, 0, 2 * Math.PI);
}

function triangle(ctx, x, y, size) {
  ctx.moveTo(x - size, y - size * 0.8);
  ctx.lineTo(x + size, y - size * 0.8);
  ctx.lineTo(x, y + size);
  ctx.closePath();
}

function planes() {
  const at = (k) => {
    const made = new Float64Array(laws.n);
    for (let i = 0; i < laws.n; i++) made[i] = laws.mean(i, k);
    return made;
  };
  const found = {};
  const { scale, decay } = report;
  if (scale && decay) {
    const [scaleName, decayName] = [scale, decay].map(parameterName);
    found.law = {
      title: `${decayName} and |${scaleName}|`,
      make: () => ({
        x: report.arrays[`param_${decay}`], y: report.arrays[`param_${scale}`].map((c) => Math.abs(c) || NaN),
        names: [`${decayName}: how fast its value fades`, `|${scaleName}|: its scale`], yLog: true,
      }),
    };
  } else {
    const middle = Math.round(report.k_ref);
    found.fade = {
      title: `how fast it fades, and its value, at ${whole(middle)}`,
      make: () => ({
        // Where a curve passes zero its exponent has no bound: such points lie at the edge.
        x: exponents(middle).map((e) => Math.max(-1, Math.min(4, e))),
        y: at(middle).map((v) => Math.abs(v) || NaN),
        names: [`exponent at k = ${whole(middle)}, from −1 to 4`, `|value| at k = ${whole(middle)}`], yLog: true,
      }),
    };
  }
  const [low, high] = report.k_range;
  found.ends = {
    title: `value at ${whole(low)} and at ${whole(high)}`,
    make: () => {
      const [x, y] = [at(low), at(high)];
      const sizes = y.map(Math.abs).filter(Number.isFinite).sort();
      return { x, y, names: [`value at k = ${whole(low)}`, `value at k = ${whole(high)}`], asinh: sizes[Math.floor(sizes.length / 3)] || 1e-9 };
    },
  };
  return found.law ? found : { ends: found.ends, fade: found.fade };
}

function showPlane() {
  const made = planes();
  const before = $("axes").value;
  $("axes").replaceChildren(...Object.entries(made).map(([key, { title }]) => element("option", { value: key, text: title })));
  if (before in made) $("axes").value = before;
  pick = made[$("axes").value].make();
  pick.isHelpful = (i) => value[i] >= 0;
  pick.isListed = (i) => isListed[i] === 1;
  charts.plane?.destroy();
  charts.plane = planeChart($("plane-chart"), {
    pick,
    marked: () => [state.open, state.other].filter((i) => i >= 0 && Number.isFinite(pick.x[i] + pick.y[i])),
    onRegion: (region) => setRegion(region, true),
    onPoint: openPoint,
  });
  $("plane-chart").setAttribute("aria-label", `${whole(laws.n)} points by ${pick.names.join(" and ")}; the table lists them all`);
  [$("x-name").textContent, $("y-name").textContent] = pick.names;
}

/** @type {[string, "x" | "y", 0 | 1][]} boxes, and the ends of the region they hold */
const LIMITS = [["x-low", "x", 0], ["x-high", "x", 1], ["y-low", "y", 0], ["y-high", "y", 1]];

function setRegion(region, isDrawn = false) {
  state.region = region;
  $("only-region").checked = region !== null;
  if (isDrawn || !region) {
    for (const [id, side, end] of LIMITS) $(id).value = region ? String(Number(region[side][end].toPrecision(6))) : "";
  }
  if (!region) charts.plane.chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  table.toTop();
  list();
}

function regionFromNumbers() {
  const region = { x: [-Infinity, Infinity], y: [-Infinity, Infinity] };
  let isAny = false;
  for (const [id, side, end] of LIMITS) {
    if ($(id).value === "") continue;
    region[side][end] = Number($(id).value);
    isAny = true;
  }
  setRegion(isAny ? region : null);
}

let planeTimer = 0;
function redrawPlaneSoon() {
  clearTimeout(planeTimer);
  planeTimer = setTimeout(() => charts.plane?.chart.redraw(false, false), 250);
}
