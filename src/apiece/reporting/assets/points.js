"use strict";
/* The list of points: its columns, filters and order, what is selected, and the export. */

const table = makeTable({
  scroll: $("scroll"),
  table: $("table"),
  isSelected: (point) => selected[point] === 1,
  isOpen: (point) => point === state.open || point === state.other,
  onSort: sortBy,
  onOpen: (point) => openPoint(point), // of a script that comes later
  onSelect: toggle,
});

function labelOf(point) {
  const { label, label_number: number } = report.arrays;
  if (label) return report.labels[label[point]];
  return number ? short(number[point], 6) : "";
}

const adviceOf = (point) => (report.advices ? report.advices[report.arrays.advice[point]] : "");

function tableColumns() {
  const { arrays } = report;
  const number = (key, title, values, className = "number wide", hint, digits = 3) => ({
    key, title, className, hint,
    keys: () => values,
    fill: (cell, i) => (cell.textContent = short(values[i], digits)),
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
  const percent = `${Math.round(100 * report.level)}\u00a0%`;
  const found = [
    check,
    { key: "rank", title: "Rank", className: "number narrow", keys: () => rank, fill: (c, i) => (c.textContent = Number.isNaN(rank[i]) ? "–" : whole(rank[i])) },
    words("id", "Point", (i) => report.ids[i], "words id"),
  ];
  if (arrays.picture_start) found.push({ title: "Picture", className: "thumb", fill: fillPicture });
  found.push(
    number("value", "Value", value, "number value", "Sort by value at this size"),
    { key: "interval", title: `${percent} interval`, className: "interval", hint: "Sort by the lower end; again, by the upper end", keys: nearEnds, fill: fillInterval },
  );
  if (arrays.label) found.push(words("label", "Label", labelOf, "words label"));
  if (arrays.label_number) found.push(number("label", "Label", arrays.label_number, "number", "Sort", 6));
  if (arrays.predicted) {
    const said = (i) => `${percentOf(arrays.predicted_p[i])} ${report.classes[arrays.predicted[i]]}`; // what is cut off is no number
    const column = words("predicted", "Predicted", said, "words predicted", "By a model that has not seen the point");
    column.keys = () => Array.from(arrays.predicted, (code, i) => code + 1 - arrays.predicted_p[i]);
    const { fill } = column;
    column.fill = (cell, i) => {
      fill(cell, i);
      cell.classList.toggle("differs", report.classes[arrays.predicted[i]] !== labelOf(i));
    };
    found.push(column);
  }
  if (arrays.predicted_value) found.push(number("predicted", "Predicted", arrays.predicted_value, "number predicted", "By a model that has not seen the point", 6));
  if (report.advices) found.push(words("advice", "Advice", adviceOf, "words advice"));
  if (report.text) found.push(words("text", report.text, textOf, "words text"));
  if (report.decay) {
    found.push(...report.parameters.map((name) => number(name, parameterName(name), arrays[`param_${name}`], `number extra ${name}`)));
  } else {
    // Parameters such as coefficients say little one by one; how fast the value fades does.
    found.push({
      key: "exponent", title: "α(k)", className: "number extra alpha", hint: "How fast its value fades at this size: minus the slope of log|value| against log k",
      keys: () => exponents(state.k), fill: (cell, i) => (cell.textContent = short(laws.exponent(i, state.k), 2)),
    });
  }
  if (arrays.r2) found.push(number("r2", "R²", arrays.r2, "number extra"));
  found.push(number("n_samples", "Samples", arrays.n_samples, "number extra samples"));
  if (arrays.probability) found.push(number("probability", "Probability", arrays.probability, "number extra"));
  found.push(words("status", "Status", (i) => report.statuses[arrays.status[i]], "words extra status"));
  $("table").classList.toggle("advised", report.advices !== undefined);
  $("table").classList.toggle("with-text", Boolean(report.text));
  return found;
}

/* What is in the column that says best what a point is. */
function textOf(point) {
  return report.text ? (report.columns.find(({ name }) => name === report.text)?.text?.[point] ?? "") : "";
}

function predictedOf(point) {
  const { predicted, predicted_p: probability, predicted_value: number } = report.arrays;
  if (number) return short(number[point], 6);
  return predicted ? `${report.classes[predicted[point]]} (${percentOf(probability[point])})` : "";
}

function fillPicture(cell, point) {
  const [picture] = pictureOf(point);
  cell.replaceChildren(...(picture ? [picture] : []));
}

function exponents(k) {
  const made = new Float64Array(laws.n);
  for (let i = 0; i < laws.n; i++) made[i] = laws.exponent(i, k);
  return made;
}

const PARAMETER_NAMES = { alpha: "α", a2: "a₂", a3: "a₃", a4: "a₄" };
const parameterName = (name) => PARAMETER_NAMES[name] ?? name;

/* The interval as a bar about zero, and as numbers for those who cannot see it. */
function fillInterval(cell, i) {
  if (!cell.firstChild) {
    const parts = [element("span", { className: "span" }), element("span", { className: "dot" })];
    const picture = element("span", { className: "forest", "aria-hidden": "true" }, parts);
    cell.append(picture, element("span", { className: "visually-hidden" }));
  }
  const [picture, words] = cell.children;
  const [low, high] = [lows[i], highs[i]];
  const isKnown = Number.isFinite(low + high);
  picture.hidden = !isKnown;
  picture.className = `forest ${value[i] < 0 ? "harms" : "helps"}`;
  cell.title = words.textContent = isKnown ? `${short(low)} to ${short(high)}` : "unknown";
  if (!isKnown) return;
  const place = (v) => 50 + (50 * Math.asinh(v / scaleOfBars)) / reachOfBars;
  const [bar, dot] = picture.children;
  bar.style.left = `${place(low)}%`;
  bar.style.width = `${Math.max(0.5, place(high) - place(low))}%`;
  dot.style.left = `${place(value[i])}%`;
}

/* What a point is surely worth: the lower ends, or the upper ones for those that harm most. */
function nearEnds(falling) {
  const ends = falling ? lows : highs;
  return ends.map((end, i) => (Number.isNaN(end) ? value[i] : end));
}

/* Bars are linear about zero and logarithmic far from it, so that none leaves its cell. */
let [scaleOfBars, reachOfBars] = [1, 1];

function sortBy(key) {
  const startsFalling = !["id", "label", "status", "advice", "rank"].includes(key);
  state.sort = { key, falling: state.sort.key === key ? !state.sort.falling : startsFalling };
  list();
}

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
    helps: (i) => lows[i] > 0,
    harms: (i) => highs[i] < 0,
    unclear: (i) => lows[i] <= 0 && highs[i] >= 0,
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
  const order = key === "value" && falling ? byValue : orderOf(column.keys(falling), falling);
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
  const { label, label_number: quantity, predicted, predicted_value: estimate } = report.arrays;
  if (label || quantity) extra.push(["label", quantity ? (i) => quantity[i] : labelOf]);
  if (predicted || estimate) extra.push(["predicted", estimate ? (i) => estimate[i] : predictedOf]);
  if (report.advices) extra.push(["advice", adviceOf], ["advice_for", () => report.n_pool ?? ""]);
  if (report.caveat) extra.push(["approximate", () => "True"]);
  const head = ["point", "k", "rank", "value", "low", "high", "status", ...extra.map(([name]) => name)];
  const rows = points.map((i) => [
    report.ids[i], state.k, rank[i], value[i], lows[i], highs[i],
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
