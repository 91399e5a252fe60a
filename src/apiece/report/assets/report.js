"use strict";
/* The page: what is shown of a report, and what happens when someone asks for something else. */

const $ = (id) => document.getElementById(id);

let report; // the description and arrays, as data.js reads them
let laws;
let columns;
const charts = {};
const state = {
  k: 1,
  sort: { key: "value", falling: true },
  region: null, // { x: [low, high], y: [low, high] } in the plane's axes
  open: -1,
  other: -1,
};
let value, half, rank, byValue, listed, isListed, selected, searched, pick;

const table = makeTable({
  scroll: $("scroll"),
  table: $("table"),
  isSelected: (point) => selected[point] === 1,
  isOpen: (point) => point === state.open || point === state.other,
  onSort: sortBy,
  onOpen: open,
  onSelect: toggle,
});

/* ---- opening ---- */

function show(fresh) {
  const kept = report ? remember() : null;
  report = fresh;
  laws = makeLaws(report);
  [value, half, rank] = [0, 1, 2].map(() => new Float64Array(laws.n));
  [isListed, selected] = [0, 1].map(() => new Uint8Array(laws.n));
  searched = null;
  document.title = report.title;
  $("title").textContent = report.title;
  showOverview();
  fillSelects();
  columns = tableColumns();
  table.setColumns(columns);
  setUpSlider();
  restore(kept);
  showPlane();
  setSize(state.k);
  if (state.open < 0 && listed.length) state.open = listed[0];
  showPoint();
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

/* What a reader has chosen, by id, so that newer data does not take it away. */
function remember() {
  const name = (point) => (point < 0 ? null : report.ids[point]);
  const chosen = report.ids.filter((_, i) => selected[i]);
  return { open: name(state.open), other: name(state.other), selected: new Set(chosen) };
}

function restore(kept) {
  if (!kept) {
    state.k = report.k_range[1];
    return;
  }
  report.ids.forEach((id, i) => (selected[i] = kept.selected.has(id) ? 1 : 0));
  state.open = kept.open === null ? -1 : report.ids.indexOf(kept.open);
  state.other = kept.other === null ? -1 : report.ids.indexOf(kept.other);
}

/* ---- overview ---- */

function showOverview() {
  const cards = Object.entries(report.facts).map(([title, facts]) => {
    const list = facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]);
    return element("div", { className: "card" }, [element("h2", { text: title }), element("dl", {}, list)]);
  });
  const total = report.ids.length;
  const bars = report.status_counts.map(([name, count]) => {
    const bar = element("span", { className: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * count) / total}%`;
    return element("li", {}, [element("span", { text: `${whole(count)} ${name}` }), bar]);
  });
  cards[Math.min(1, cards.length - 1)].append(element("ul", { className: "statuses" }, bars));
  $("facts").replaceChildren(...cards);
  $("notes").replaceChildren(...report.notes.map((text) => element("p", { text })));
  $("made").textContent = `Made by apiece ${report.version}. Values are in units of ${report.metric}; positive means that the point helps.`;
  const [low, high] = report.k_range.map(whole);
  $("lead").textContent = `What each point is expected to change when it joins a training set of k others, in units of ${report.metric}. Sampled from k = ${low} to ${high}; move the size to rank the points anew.`;
  $("caveat").hidden = !report.caveat;
  $("caveat").textContent = report.caveat ?? "";
  charts.loss?.destroy();
  charts.loss = null;
  $("loss").hidden = !report.loss;
  if (report.loss) {
    charts.loss = lossChart($("loss-chart"), report.loss, report.metric);
    const [first, last] = [report.loss.mean[0], report.loss.mean.at(-1)];
    $("loss-chart").setAttribute("aria-label", `Mean loss falls from ${short(first)} to ${short(last)} over the sampled sizes`);
  }
}

function fillSelects() {
  const fill = (id, names, any) => {
    const before = $(id).value;
    const options = names.map(([code, text]) => element("option", { value: code, text }));
    $(id).replaceChildren(element("option", { value: "", text: any }), ...options);
    $(id).value = before;
  };
  const numbered = (names) => names.map((text, code) => [String(code), text || "none"]);
  const present = new Set(report.status_counts.map(([name]) => name));
  fill("status", numbered(report.statuses).filter(([, text]) => present.has(text)), "any");
  $("label-box").hidden = !report.labels;
  if (report.labels) fill("label", numbered(report.labels), "any");
  $("advice-box").hidden = !report.advices;
  if (report.advices) fill("advice", numbered(report.advices), "any");
}

/* ---- the table ---- */

function labelOf(point) {
  const { label, label_number: number } = report.arrays;
  if (label) return report.labels[label[point]];
  return number ? short(number[point], 6) : "";
}

const adviceOf = (point) => (report.advices ? report.advices[report.arrays.advice[point]] : "");

function tableColumns() {
  const { arrays } = report;
  const number = (key, title, values, className = "number wide", hint) => ({
    key, title, className, hint,
    keys: () => values,
    fill: (cell, i) => (cell.textContent = short(values[i])),
  });
  const words = (key, title, text, className = "words", hint) => {
    let ranks = null;
    return {
      key, title, className, hint,
      keys: () => (ranks ??= ranksOf(report.ids.map((_, i) => text(i)))),
      fill: (cell, i) => {
        cell.textContent = text(i);
        cell.title = text(i);
      },
    };
  };
  const check = {
    title: "Selected", className: "tick",
    fill: (cell, i) => {
      if (!cell.firstChild) cell.append(element("input", { type: "checkbox", tabindex: -1 }));
      cell.firstChild.setAttribute("aria-label", `Select point ${report.ids[i]}`);
      cell.firstChild.checked = selected[i] === 1;
    },
  };
  const percent = `${Math.round(100 * report.level)} %`;
  const found = [
    check,
    { key: "rank", title: "Rank", className: "number narrow", keys: () => rank, fill: (c, i) => (c.textContent = Number.isNaN(rank[i]) ? "–" : whole(rank[i])) },
    words("id", "Point", (i) => report.ids[i], "words id"),
  ];
  found.push(
    number("value", "Value", value, "number value", "Sort by value at this size"),
    { key: "half", title: `${percent} interval`, className: "interval", hint: "Sort by width", keys: () => half, fill: fillInterval },
  );
  if (arrays.label) found.push(words("label", "Label", labelOf));
  if (arrays.label_number) found.push(number("label", "Label", arrays.label_number, "number"));
  found.push(...report.parameters.map((name) => number(name, PARAMETER_NAMES[name] ?? name, arrays[`param_${name}`], `number wide ${name}`)));
  if (arrays.r2) found.push(number("r2", "R²", arrays.r2));
  found.push(number("n_samples", "Samples", arrays.n_samples, "number wide samples"));
  if (report.advices) found.push(words("advice", "Advice", adviceOf));
  if (arrays.probability) found.push(number("probability", "Probability", arrays.probability));
  found.push(words("status", "Status", (i) => report.statuses[arrays.status[i]], "words wide status"));
  return found;
}

const PARAMETER_NAMES = { alpha: "α", c: "c", a2: "a₂", a3: "a₃", a4: "a₄" };

/* The interval as a bar about zero, and as numbers for those who cannot see it. */
function fillInterval(cell, i) {
  if (!cell.firstChild) {
    const parts = [element("span", { className: "span" }), element("span", { className: "dot" })];
    const picture = element("span", { className: "forest", "aria-hidden": "true" }, parts);
    cell.append(picture, element("span", { className: "visually-hidden" }));
  }
  const [picture, words] = cell.children;
  const [low, high] = [value[i] - half[i], value[i] + half[i]];
  const isKnown = Number.isFinite(low + high);
  picture.hidden = !isKnown;
  picture.className = `forest ${value[i] < 0 ? "harms" : "helps"}`;
  cell.title = words.textContent = isKnown ? `${short(low)} to ${short(high)}` : "unknown";
  if (!isKnown) return;
  const place = (v) => 50 + 50 * Math.max(-1, Math.min(1, v / scaleOfBars));
  const [bar, dot] = picture.children;
  bar.style.left = `${place(low)}%`;
  bar.style.width = `${Math.max(0.5, place(high) - place(low))}%`;
  dot.style.left = `${place(value[i])}%`;
}

let scaleOfBars = 1;

function sortBy(key) {
  const startsFalling = !["id", "label", "status", "advice", "rank"].includes(key);
  state.sort = { key, falling: state.sort.key === key ? !state.sort.falling : startsFalling };
  list();
}

/* ---- size ---- */

function setUpSlider() {
  const [low, high] = report.k_reach;
  const place = (k) => (100 * Math.log(k / low)) / Math.log(high / low);
  const [from, to] = report.k_range.map(place);
  $("sampled").style.left = `${from}%`;
  $("sampled").style.width = `${to - from}%`;
  const marks = [...new Set([low, ...report.k_range, high])].map((k) => {
    const mark = element("span", { text: k < 1e5 ? whole(k) : short(k, 2) });
    mark.style.left = `${place(k)}%`;
    return mark;
  });
  $("ticks").replaceChildren(...marks);
}

function setSize(k) {
  const [low, high] = report.k_reach;
  state.k = Math.max(1, Math.round(k));
  const fraction = Math.log(state.k / low) / Math.log(high / low);
  const position = String(Math.round(1000 * Math.max(0, Math.min(1, fraction))));
  if (document.activeElement !== $("slider")) $("slider").value = position;
  if (document.activeElement !== $("size-number")) $("size-number").value = state.k;
  const [from, to] = report.k_range;
  const beyond = state.k > to ? state.k / to : state.k < from ? from / state.k : 0;
  const note = beyond ? `extrapolated, ${short(beyond, 2)} × ${state.k > to ? "beyond" : "below"} the sampled sizes` : "within the sampled sizes";
  $("size-note").textContent = note;
  $("size").classList.toggle("extrapolated", beyond > 0);
  $("slider").setAttribute("aria-valuetext", `${state.k}, ${note}`);
  $("ranked-at").textContent = whole(state.k);
  evaluate();
  // The signs of power laws do not depend on the size, so the plane looks as before.
  list(report.family === "power" && $("sign").value === "");
  charts.curve?.mark();
  if (state.open >= 0) showLead();
}

function evaluate() {
  laws.evaluate(state.k, value, half);
  byValue = orderOf(value, true);
  rank.fill(NaN);
  let known = 0;
  while (known < laws.n && !Number.isNaN(value[byValue[known]])) rank[byValue[known]] = ++known;
  // Bars reach as far as all but the most extreme points do: one in fifty at either end.
  const end = (share) => (known ? Math.abs(value[byValue[Math.floor(share * (known - 1))]]) : 0);
  scaleOfBars = 1.2 * Math.max(end(0.02), end(0.98)) || 1;
}

/* ---- filters ---- */

function textsOf() {
  if (searched) return searched;
  const columns = (report.columns ?? []).filter((column) => column.text);
  searched = report.ids.map((id, i) =>
    [id, labelOf(i), ...columns.map((column) => column.text[i])].join("\n").toLowerCase(),
  );
  return searched;
}

function filter() {
  const tests = [];
  const words = $("search").value.trim().toLowerCase();
  const { arrays } = report;
  const code = (id, codes) => {
    if (codes && $(id).value !== "") {
      const wanted = Number($(id).value);
      tests.push((i) => codes[i] === wanted);
    }
  };
  if (words) {
    const texts = textsOf();
    tests.push((i) => texts[i].includes(words));
  }
  code("label", arrays.label);
  code("status", arrays.status);
  code("advice", arrays.advice);
  const signs = {
    helps: (i) => value[i] - half[i] > 0,
    harms: (i) => value[i] + half[i] < 0,
    unclear: (i) => Math.abs(value[i]) <= half[i],
    positive: (i) => value[i] > 0,
    negative: (i) => value[i] < 0,
  };
  if ($("sign").value) tests.push(signs[$("sign").value]);
  if ($("only-region").checked && state.region) tests.push(inRegion);
  if ($("only-selected").checked) tests.push((i) => selected[i] === 1);
  return tests;
}

function inRegion(i) {
  const { x, y } = state.region;
  return pick.x[i] >= x[0] && pick.x[i] <= x[1] && pick.y[i] >= y[0] && pick.y[i] <= y[1];
}

function list(isPlaneSame = false) {
  const tests = filter();
  const { key, falling } = state.sort;
  const column = columns.find((one) => one.key === key);
  const order = key === "value" && falling ? byValue : orderOf(column.keys(), falling);
  isListed.fill(tests.length ? 0 : 1);
  listed = tests.length ? order.filter((point) => tests.every((test) => test(point))) : order;
  if (tests.length) for (const point of listed) isListed[point] = 1;
  table.show(listed, state.sort);
  showCount();
  if (!isPlaneSame) redrawPlaneSoon();
}

function showCount() {
  let chosen = 0;
  for (let i = 0; i < selected.length; i++) chosen += selected[i];
  $("count").textContent = `${whole(listed.length)} of ${whole(laws.n)} points listed, ${whole(chosen)} selected`;
  $("export").textContent = chosen ? `Export ${whole(chosen)} selected (CSV)` : "Export listed (CSV)";
  $("clear").disabled = !chosen;
}

/* ---- selecting and exporting ---- */

function toggle(point) {
  selected[point] = 1 - selected[point];
  if ($("only-selected").checked) list();
  else {
    table.draw();
    showCount();
  }
}

function exported() {
  const chosen = report.ids.map((_, i) => i).filter((i) => selected[i]);
  const points = chosen.length ? chosen : Array.from(listed);
  const extra = [];
  if (report.arrays.label || report.arrays.label_number) extra.push(["label", labelOf]);
  if (report.advices) extra.push(["advice", adviceOf]);
  if (report.caveat) extra.push(["approximate", () => "True"]);
  const head = ["point", "k", "rank", "value", "low", "high", "status", ...extra.map(([name]) => name)];
  const rows = points.map((i) => [
    report.ids[i], state.k, rank[i], value[i], value[i] - half[i], value[i] + half[i],
    report.statuses[report.arrays.status[i]], ...extra.map(([, text]) => text(i)),
  ]);
  return csvOf([head, ...rows.map((row) => row.map((cell) => (Number.isNaN(cell) ? "" : cell)))]);
}

function download() {
  const url = URL.createObjectURL(new Blob([exported()], { type: "text/csv" }));
  const link = element("a", { href: url, download: `points-at-${state.k}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* ---- one point ---- */

function open(point) {
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
      curves, kRange: report.k_range, kReach: reach, label: report.metric,
      at: () => state.k, isLog: $("log-values").checked,
    });
  }
  const percent = `${Math.round(100 * report.level)} %`;
  $("curve-caption").textContent =
    `Line: the law, solid where sampled, dashed beyond, with its ${percent} interval. Marks: means of the samples by size, with standard errors${report.arrays.sample_start ? "; specks: single samples" : ""}.`;
  showLead();
  showCrossing(reach);
  showNumbers(reach);
  showAbout();
  showNear();
}

function sentence(point) {
  const [low, high] = [value[point] - half[point], value[point] + half[point]];
  const verb = value[point] < 0 ? "raise" : "lower";
  const interval = Number.isFinite(low) ? ` (${Math.round(100 * report.level)} % interval ${short(low)} to ${short(high)})` : "";
  if (Number.isNaN(value[point])) return "has no law.";
  return `is expected to ${verb} ${report.metric} by ${short(Math.abs(value[point]))}${interval}, rank ${whole(rank[point])} of ${whole(laws.n)}.`;
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
  const facts = report.parameters.map((name) => [PARAMETER_NAMES[name] ?? name, short(arrays[`param_${name}`][point], 4)]);
  for (const [name, words] of [["sigma", "σ (noise)"], ["beta", "β (noise)"], ["r2", "R²"]]) {
    if (arrays[name]) facts.push([words, short(arrays[name][point])]);
  }
  facts.push(["samples", whole(arrays.n_samples[point])], ["status", report.statuses[arrays.status[point]]]);
  if (report.advices) {
    const odds = arrays.probability ? `, probability ${short(arrays.probability[point], 2)}` : "";
    facts.push(["advice", (adviceOf(point) || "none") + odds]);
    if (report.reasons) facts.push(["reason", report.reasons[arrays.reason[point]]]);
  }
  const long = [];
  for (const { name, text, array } of report.columns ?? []) {
    if (text && text[point].length > 60) long.push([name, text[point]]);
    else facts.push([name, text ? text[point] : short(arrays[array][point], 4)]);
  }
  const list = facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]);
  const texts = long.flatMap(([name, text]) => [element("h4", { text: name }), element("blockquote", { text })]);
  $("about").replaceChildren(...pictureOf(point), ...texts, element("dl", { className: "about" }, list));
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
  $("near-title").textContent = `Nearest points, by ${report.near.by}`;
  const found = nearestTo(report, state.open, 6).map((point) => {
    const go = element("button", { type: "button" }, [element("bdi", { text: report.ids[point] })]);
    go.addEventListener("click", () => open(point));
    const versus = element("button", { type: "button", className: "quiet", text: "compare", "aria-label": `Compare with point ${report.ids[point]}` });
    versus.addEventListener("click", () => compare(point));
    const told = [labelOf(point), short(value[point])].filter(Boolean).join(", ");
    return element("li", {}, [go, element("span", { text: told }), versus]);
  });
  $("near").replaceChildren(...found);
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
  $("other").setAttribute("aria-invalid", id !== "" && point < 0);
  compare(point);
  if (id !== "" && point < 0) $("crossing").textContent = `There is no point ${id}.`;
}

/* ---- the plane ---- */

function planes() {
  const at = (k) => {
    const made = new Float64Array(laws.n);
    for (let i = 0; i < laws.n; i++) made[i] = laws.mean(i, k);
    return made;
  };
  const found = {};
  if (report.family === "power") {
    found.law = {
      title: "α and |c|",
      make: () => ({
        x: report.arrays.param_alpha, y: report.arrays.param_c.map((c) => Math.abs(c) || NaN),
        names: ["α: how fast its value fades", "|c|: its scale"], yLog: true,
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
  return found;
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
    onPoint: open,
  });
  $("plane-chart").setAttribute("aria-label", `${whole(laws.n)} points by ${pick.names.join(" and ")}; the table lists them all`);
  [$("x-name").textContent, $("y-name").textContent] = pick.names;
}

const LIMITS = [["x-low", "x", 0], ["x-high", "x", 1], ["y-low", "y", 0], ["y-high", "y", 1]];

function setRegion(region, isDrawn = false) {
  state.region = region;
  $("only-region").checked = region !== null;
  if (isDrawn || !region) {
    for (const [id, side, end] of LIMITS) $(id).value = region ? Number(region[side][end].toPrecision(6)) : "";
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

/* ---- live ---- */

async function follow() {
  let version = 0;
  for (;;) {
    try {
      const news = await (await fetch("progress", { cache: "no-store" })).json();
      showProgress(news);
      if (news.version !== version && news.version > 0) {
        const bytes = await (await fetch("data", { cache: "no-store" })).arrayBuffer();
        show(await readReport(bytes));
        version = news.version;
      }
    } catch (error) {
      $("progress-text").textContent = "The server does not answer any more; what is shown is the last it said.";
    }
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

function showProgress(news) {
  $("live").hidden = false;
  $("progress").value = news.planned ? news.stored / news.planned : 0;
  const share = news.planned ? Math.floor((100 * news.stored) / news.planned) : 0;
  const fitted = news.version ? `laws fitted to ${whole(news.fitted)} of them` : "no laws yet";
  $("progress-text").textContent = news.trouble || (news.is_complete
    ? `Complete: ${whole(news.stored)} contributions; ${fitted}.`
    : `${share} %: ${whole(news.stored)} of ${whole(news.planned)} contributions; ${fitted}. This page follows.`);
  const text = JSON.stringify(news.history);
  if (news.history.length && text !== showProgress.last) {
    showProgress.last = text;
    charts.history?.destroy();
    charts.history = historyChart($("history-chart"), news.history);
    const last = news.history.at(-1);
    $("history-chart").setAttribute("aria-label", `Median standard error over value: ${short(last.relative_error)} after ${short(last.samples)} contributions a point`);
  }
}

/* ---- wiring ---- */

function listen() {
  let isAsked = false;
  $("slider").addEventListener("input", () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      const [low, high] = report.k_reach;
      setSize(low * Math.exp((Number($("slider").value) / 1000) * Math.log(high / low)));
    });
  });
  $("size-number").addEventListener("change", () => setSize(Number($("size-number").value) || report.k_range[1]));
  for (const id of ["search", "label", "sign", "status", "advice", "only-region", "only-selected"]) {
    $(id).addEventListener($(id).tagName === "SELECT" ? "change" : "input", () => {
      table.toTop();
      list();
    });
  }
  $("select-all").addEventListener("click", () => {
    for (const point of listed) selected[point] = 1;
    table.draw();
    showCount();
  });
  $("clear").addEventListener("click", () => {
    selected.fill(0);
    list();
  });
  $("export").addEventListener("click", download);
  $("other").addEventListener("change", compareById);
  $("log-values").addEventListener("change", showPoint);
  $("axes").addEventListener("change", () => {
    setRegion(null);
    showPlane();
  });
  for (const [id] of LIMITS) $(id).addEventListener("change", regionFromNumbers);
  $("region-clear").addEventListener("click", () => setRegion(null));
  const recolour = () => {
    if (!report) return;
    showOverview();
    showPoint();
    charts.plane?.redraw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", recolour);
}

async function start() {
  const isLive = document.querySelector('meta[name="apiece-mode"]').content === "live";
  try {
    listen();
    const text = $("data").textContent;
    $("data").remove();
    if (text) show(await readReport(bytesOf(text)));
    else $("title").textContent = "Waiting for the first contributions …";
    if (isLive) follow();
  } catch (error) {
    $("trouble").hidden = false;
    $("trouble").textContent = `This report cannot be shown (${error.message}). It needs a browser of 2023 or newer; if yours is, the file is damaged: make it again.`;
    throw error;
  }
}

start();
