"use strict";
/* One point: its curve, perhaps next to that of another, its row, its picture and its neighbours. */

function openPoint(point) {
  state.open = point;
  state.other = -1;
  $("other").value = "";
  showPoint();
  table.draw();
  redrawPlaneSoon();
  if (matchMedia("(max-width: 1100px)").matches) $("point").scrollIntoView();
}

function curveOf(point, stroke) {
  const { arrays, bins } = report;
  const at = point * bins.length;
  const start = arrays.sample_start;
  const [from, to] = start ? [start[point], start[point + 1]] : [0, 0];
  return {
    mean: (k) => laws.mean(point, k),
    interval: (k) => laws.interval(point, k),
    means: {
      k: bins,
      mean: Array.from(arrays.bin_mean.subarray(at, at + bins.length)),
      error: Array.from(arrays.bin_error.subarray(at, at + bins.length)),
    },
    samples: start
      ? { k: arrays.sample_k.subarray(from, to), delta: arrays.sample_delta.subarray(from, to) }
      : { k: [], delta: [] },
    stroke,
    shape: laws.mean(point, report.k_ref) < 0 ? "down" : "up",
  };
}

function showPoint() {
  charts.curve?.destroy();
  charts.curve = null;
  const point = state.open;
  $("point").classList.toggle("empty", point < 0);
  if (point < 0) return;
  const sign = laws.mean(point, report.k_ref) < 0 ? "harms" : "helps";
  const drawn = [[point, sign], ...(state.other < 0 ? [] : [[state.other, "second"]])];
  const curves = drawn.map(([i, name]) => curveOf(i, colour(name)));
  const legend = drawn.map(([i, className]) => element("span", { className, text: `━ ${report.ids[i]}` }));
  $("curve-legend").replaceChildren(...(state.other < 0 ? [] : legend));
  $("point-title").textContent = `Point ${report.ids[point]}`;
  const [low, high] = report.k_range;
  const reach = [low, Math.max(high * 10, Math.min(state.k * 1.2, report.k_reach[1]))];
  if (curves.every(({ mean }) => Number.isFinite(mean(report.k_ref)))) {
    charts.curve = curveChart($("curve-chart"), {
      curves, kRange: report.k_range, kReach: reach, label: metricWords(),
      at: () => state.k, isLog: $("log-values").checked,
    });
  }
  const percent = `${Math.round(100 * report.level)}\u00a0%`;
  $("curve-caption").textContent =
    `Line: the law, solid where sampled, dashed beyond, with its ${percent} interval. Marks: means of the samples by size, with standard errors${report.arrays.sample_start ? "; specks: single samples" : ""}.`;
  showLead();
  showCrossing();
  showNumbers(reach);
  showAbout();
  showWhy();
  showNear();
  showSwaps();
}

function sentence(point) {
  const [low, high] = [lows[point], highs[point]];
  const verb = value[point] < 0 ? "raise" : "lower";
  const interval = Number.isFinite(low) ? ` (${Math.round(100 * report.level)}\u00a0% interval ${short(low)} to ${short(high)})` : "";
  if (Number.isNaN(value[point])) return "has no law.";
  return `is expected to ${verb} ${metricWords()} by ${short(Math.abs(value[point]))}${interval}${rootWords(value[point])}, rank ${whole(rank[point])} of ${whole(laws.n)}.`;
}

/* A change of a squared error as a change of its root, in units of the target: d / (2 RMSE). */
function rootWords(change) {
  const { head, loss } = report;
  if (!loss?.is_root) return "";
  const root = lossAt(state.k);
  const unit = head.target ? ` in units of ${head.target}` : "";
  return `: RMSE ${change < 0 ? "rises" : "falls"} by ${short(Math.abs(change) / (2 * root), 2)} of ${short(root)}${unit}`;
}

/* The mean loss at a size, between those that were sampled. */
function lossAt(k) {
  const { k: sizes, mean } = report.loss;
  const after = sizes.findIndex((size) => size >= k);
  if (after === 0) return mean[0];
  if (after < 0) return mean.at(-1);
  const share = Math.log(k / sizes[after - 1]) / Math.log(sizes[after] / sizes[after - 1]);
  return mean[after - 1] + share * (mean[after] - mean[after - 1]);
}

function showLead() {
  const label = labelOf(state.open);
  const who = label === "" ? "It" : `Label ${label}; it`;
  $("point-lead").textContent = `${who} ${sentence(state.open)}`;
  const words = `Curve of point ${report.ids[state.open]}. At k = ${state.k} it ${sentence(state.open)}`;
  $("curve-chart").setAttribute("aria-label", words);
}

function showCrossing() {
  const [a, b] = [state.open, state.other];
  if (b < 0) {
    $("crossing").textContent = "";
    return;
  }
  const found = laws.crossings(a, b, ...report.k_reach);
  const [first, second] = laws.mean(a, report.k_reach[0]) > laws.mean(b, report.k_reach[0]) ? [a, b] : [b, a];
  const [one, two] = [report.ids[first], report.ids[second]];
  const [low, high] = report.k_reach.map(whole);
  $("crossing").textContent = found.length
    ? `Point ${one} is worth more than point ${two} up to k = ${whole(found[0])}${found.length === 1 ? ", and less beyond." : `; they change places at k = ${found.map(whole).join(", ")}.`}`
    : `Point ${one} is worth more than point ${two} at every size from ${low} to ${high}.`;
}

function showNumbers(reach) {
  const points = [state.open, ...(state.other < 0 ? [] : [state.other])];
  const heads = ["k", ...points.flatMap((i) => [`point ${report.ids[i]}`, "low", "high"])];
  const head = element("tr", {}, heads.map((text) => element("th", { text, scope: "col" })));
  const rows = logSpaced(report.k_range[0], reach[1], 7).map((k) => {
    const cells = points.flatMap((i) => [laws.mean(i, k), ...laws.interval(i, k)].map((v) => short(v)));
    return element("tr", {}, [whole(k), ...cells].map((text) => element("td", { text, className: "number" })));
  });
  $("numbers-body").replaceChildren(element("table", { className: "small" }, [head, ...rows]));
}

function showAbout() {
  const point = state.open;
  const { arrays } = report;
  const law = report.parameters.map((name) => [PARAMETER_NAMES[name] ?? name, short(arrays[`param_${name}`][point], 4)]);
  for (const [name, words] of [["sigma", "σ (noise)"], ["beta", "β (noise)"], ["r2", "R²"]]) {
    if (arrays[name]) law.push([words, short(arrays[name][point])]);
  }
  law.push(["samples", whole(arrays.n_samples[point])], ["status", report.statuses[arrays.status[point]]]);
  const [facts, long] = [[], []];
  for (const { name, text, array } of report.columns ?? []) {
    if (text && text[point].length > 60) long.push([name, text[point]]);
    else facts.push([name, text ? text[point] : short(arrays[array][point], 4)]);
  }
  const listed = (pairs) => element("dl", { className: "about" }, pairs.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]));
  const texts = long.flatMap(([name, text]) => [element("h4", { text: name }), element("blockquote", { text })]);
  $("point-what").replaceChildren(...pictureOf(point), ...texts);
  $("about").replaceChildren(listed(facts));
  $("about-title").hidden = facts.length === 0;
  $("law").replaceChildren(listed(law));
  showAdvice(point);
}

function showAdvice(point) {
  const { arrays, reasons, advices } = report;
  $("point-advice").hidden = !advices;
  if (!advices) return;
  const odds = arrays.probability && adviceOf(point) !== "keep" ? `, probability ${short(arrays.probability[point], 2)}` : "";
  const reason = reasons ? reasons[arrays.reason[point]] : "";
  $("point-advice").replaceChildren(
    element("b", { text: `Advice: ${adviceOf(point) || "none"}` }),
    element("span", { text: `${odds}${reason ? `. Reason: ${reason}.` : ""}` }),
  );
  $("point-advice").dataset.advice = adviceOf(point);
}

function pictureOf(point) {
  const { pictures, picture_start: start } = report.arrays;
  if (!start || start[point] === start[point + 1]) return [];
  let bytes = "";
  for (const byte of pictures.subarray(start[point], start[point + 1])) bytes += String.fromCharCode(byte);
  const source = `data:image/png;base64,${btoa(bytes)}`;
  return [element("img", { src: source, alt: `Picture of point ${report.ids[point]}`, className: "picture" })];
}

function showNear() {
  $("near-title").textContent = `Nearest points by ${report.near.by}: label and value`;
  const words = (point) => [[labelOf(point), short(value[point])].filter(Boolean).join(", "), textOf(point)].filter(Boolean).join(" · ");
  const found = nearestTo(report, state.open, 6);
  $("near").replaceChildren(...found.map((point) => otherPoint(point, words(point))));
}

/* The points that it passes, or that pass it, within the sampled sizes. */
function showSwaps() {
  const [low, high] = report.k_range;
  const found = laws.swaps(state.open, low, high, 5);
  $("swaps-title").hidden = found.length === 0;
  const words = (point) => {
    const at = laws.crossings(state.open, point, low, high)[0];
    const verb = laws.mean(state.open, high) > laws.mean(point, high) ? "passes it" : "is passed by it";
    return `${verb} at k = ${whole(at)}`;
  };
  $("swaps").replaceChildren(...found.map((point) => otherPoint(point, words(point))));
}

/* A line about another point: a button that opens it, a word, and one that compares. */
function otherPoint(point, text) {
  const go = element("button", { type: "button" }, [element("bdi", { text: report.ids[point] })]);
  go.addEventListener("click", () => openPoint(point));
  const versus = element("button", { type: "button", className: "quiet", text: "compare", "aria-label": `Compare with point ${report.ids[point]}` });
  versus.addEventListener("click", () => compare(point));
  return element("li", {}, [go, ...pictureOf(point), element("span", { text }), versus]);
}

function compare(point) {
  state.other = point === state.open ? -1 : point;
  if (point >= 0) $("other").value = report.ids[point];
  showPoint();
  table.draw();
  redrawPlaneSoon();
}

function compareById() {
  const id = $("other").value.trim();
  const point = report.ids.indexOf(id);
  $("other").setAttribute("aria-invalid", String(id !== "" && point < 0));
  compare(point);
  if (id !== "" && point < 0) $("crossing").textContent = `There is no point ${id}.`;
}
