"use strict";
/* The page as a whole: opening a report, the size at which points are ranked, and who listens to what. */

function show(fresh) {
  const kept = report ? remember() : null;
  report = fresh;
  laws = makeLaws(report);
  [value, lows, highs, rank] = [0, 1, 2, 3].map(() => new Float64Array(laws.n));
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
    state.k = report.k_pool ?? report.k_range[1];
    return;
  }
  report.ids.forEach((id, i) => (selected[i] = kept.selected.has(id) ? 1 : 0));
  state.open = kept.open === null ? -1 : report.ids.indexOf(kept.open);
  state.other = kept.other === null ? -1 : report.ids.indexOf(kept.other);
}

function setUpSlider() {
  const [low, high] = report.k_reach;
  const place = (k) => (100 * Math.log(k / low)) / Math.log(high / low);
  const [from, to] = report.k_range.map(place);
  $("sampled").style.left = `${from}%`;
  $("sampled").style.width = `${to - from}%`;
  const ends = [from > 0 && from < 9 ? report.k_range[0] : low, high]; // numbers that would touch
  const sizes = [...new Set([...ends, ...report.k_range])].sort((one, other) => one - other);
  const marks = sizes.map((k) => {
    const mark = element("span", { text: k < 1e6 ? whole(k) : short(k, 2) });
    mark.style.left = `${place(k)}%`;
    return mark;
  });
  $("ticks").replaceChildren(...marks);
  $("yours").hidden = !report.n_pool;
  if (report.n_pool) {
    $("yours").style.left = `${place(report.n_pool)}%`;
    const [words, isLate] = [`your data: ${whole(report.n_pool)}`, place(report.n_pool) > 55];
    $("yours").textContent = isLate ? `${words} ▲` : `▲ ${words}`; // the mark is below its place
    $("yours").classList.toggle("late", isLate);
  }
}

function setSize(k) {
  const [low, high] = report.k_reach;
  state.k = Math.max(low, Math.min(high, Math.round(k)));
  const fraction = Math.log(state.k / low) / Math.log(high / low);
  const position = String(Math.round(1000 * Math.max(0, Math.min(1, fraction))));
  if (document.activeElement !== $("slider")) $("slider").value = position;
  if (document.activeElement !== $("size-number")) $("size-number").value = String(state.k);
  const [from, to] = report.k_range;
  const beyond = state.k > to ? state.k / to : state.k < from ? from / state.k : 0;
  const note = beyond ? `extrapolated, ${short(beyond, 2)} × ${state.k > to ? "beyond" : "below"} the sampled sizes` : "within the sampled sizes";
  const known = state.k > report.reach && state.k > to ? "; not known: no backtest supports it" : "";
  $("size-note").textContent = note + known;
  $("size").classList.toggle("extrapolated", beyond > 0);
  $("slider").setAttribute("aria-valuetext", `${state.k}, ${note}`);
  $("ranked-at").textContent = whole(state.k);
  evaluate();
  // Where a parameter gives the sign at every size, the plane looks as before.
  list(Boolean(report.scale) && $("sign").value === "");
  charts.curve?.mark();
  if (state.open >= 0) showLead();
}

function evaluate() {
  laws.evaluate(state.k, value, lows, highs);
  byValue = orderOf(value, true);
  rank.fill(NaN);
  let known = 0;
  while (known < laws.n && !Number.isNaN(value[byValue[known]])) rank[byValue[known]] = ++known;
  let most = 0;
  for (let i = 0; i < laws.n; i++) {
    for (const end of [lows[i], highs[i], value[i]]) if (Math.abs(end) > most && Number.isFinite(end)) most = Math.abs(end);
  }
  const size = (share) => Math.abs(value[byValue[Math.floor(share * (known - 1))]]) || 0;
  scaleOfBars = (known ? Math.max(size(0.1), size(0.9)) : 0) || 1;
  reachOfBars = 1.05 * Math.asinh(most / scaleOfBars) || 1;
}

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
  $("size-number").addEventListener("change", () => {
    if ($("size-number").value === "") return;
    const asked = Number($("size-number").value);
    setSize(asked);
    $("size-number").value = String(state.k);
    if (asked !== state.k) $("size-note").textContent += `; sizes go from ${report.k_reach.map(whole).join(" to ")}`;
  });
  $("all-columns").addEventListener("change", () => $("table").classList.toggle("all", $("all-columns").checked));
  $("yours").addEventListener("click", () => setSize(report.n_pool));
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
  $("draw-region").addEventListener("click", () => {
    const isDrawing = $("plane-chart").classList.toggle("drawing");
    $("draw-region").setAttribute("aria-pressed", String(isDrawing));
  });
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
  const isLive = /** @type {HTMLMetaElement} */ (document.querySelector('meta[name="apiece-mode"]')).content === "live";
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
