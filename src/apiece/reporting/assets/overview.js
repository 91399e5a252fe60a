"use strict";
/* The first screen: what to do, the model and how good it is, whether more data would help; at the
   end of the page what was run; and the choices of filters. */

function showOverview() {
  showAdvised();
  showModel();
  const cards = Object.entries(report.facts).map(([title, facts]) => {
    const list = facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]);
    return element("div", { className: "card" }, [element("h2", { text: title }), element("dl", {}, list)]);
  });
  const list = (name) => listOnly("status", report.statuses, name);
  cards[Math.min(1, cards.length - 1)].append(bars(report.status_counts, list));
  $("facts").replaceChildren(...cards);
  $("notes").replaceChildren(...report.notes.map((text) => element("p", { text })));
  $("made").textContent = `Made by apiece ${report.version}. Values are in units of ${metricWords()}; positive means that the point helps.`;
  const metric = metricWords();
  $("lead").textContent = `A point's value is by how much ${metric} falls when the point joins a training set of k others: positive helps, negative harms. Choose the size k below.`;
  $("caveat").hidden = !report.caveat;
  $("caveat").textContent = report.caveat ?? "";
  charts.loss?.destroy();
  charts.loss = null;
  $("loss").hidden = !report.loss;
  if (report.loss) {
    charts.loss = lossChart($("loss-chart"), report.loss, report.loss.name);
    const [first, last] = [report.loss.mean[0], report.loss.mean.at(-1)];
    $("loss-chart").setAttribute("aria-label", `Mean ${report.loss.name} falls from ${short(first)} to ${short(last)} over the sampled sizes`);
    $("loss-words").textContent = lossWords(report.loss);
  }
}

const withMinus = (text) => text.replace(/-(?=\d)/g, "\u2212"); // a hyphen would end a line

/* What to do: the advice in a sentence, its measured effect by part, and how many rows it is about. */
function showAdvised() {
  const { advice } = report.head;
  $("do").hidden = !advice && !report.advice_counts.length;
  $("do-words").textContent = withMinus(advice?.headline ?? "");
  $("do-scope").textContent = advice?.scope ?? "";
  const parts = advice?.effect ?? []; // a single part and all are the same, and the sentence says it
  $("do-effect").hidden = parts.length < 3 || !report.advice_counts.some(([name]) => name === "drop" || name === "relabel");
  $("do-effect").replaceChildren(...parts.map(([name, rows, ...changes]) =>
    element("li", {}, [element("b", { text: name === "all" ? "together" : `${name} ${rows}` }), ...changes.map((text) => element("span", { text: withMinus(text) }))]),
  ));
  const list = (name) => {
    state.sort = name === "keep" ? { key: "interval", falling: true } : { key: "value", falling: false };
    listOnly("advice", report.advices, name);
  };
  $("do-counts").replaceChildren(bars(report.advice_counts, list, "statuses compact"));
}

/* List the points with one word, from the top. */
function listOnly(id, names, name) {
  $(id).value = String(names.indexOf(name));
  $(id).dispatchEvent(new Event("change"));
  $("points").scrollIntoView();
}

function showModel() {
  const { file, data, model, measures } = report.head;
  const facts = [["file", file], ["data", data], ["model", model], ["scored by", metricWords()]].filter(([, text]) => text);
  $("model").hidden = !data && !measures.length;
  $("measures").replaceChildren(...measures.map(([name, text]) =>
    element("p", {}, [element("b", { text }), element("span", { text: name })]),
  ));
  if (measures.length) $("measures").append(element("p", { className: "hint", text: "on rows it has not seen, by five folds" }));
  $("model-facts").replaceChildren(...facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]));
}

const metricWords = () => report.metric.replaceAll("_", " ");

/** @param {Loss} loss */
function lossWords({ curve, curve_k: sizes, low, high, k_range: sampled }) {
  if (!curve) return "";
  const now = curve[sizes.findIndex((k) => k >= sampled[1])];
  const percent = `${Math.round(100 * report.level)}\u00a0%`;
  return `${report.loss.name} ${short(now)} at ${whole(sampled[1])} points; predicted at ${whole(sizes.at(-1))}: ${short(curve.at(-1))} (${percent} interval ${short(low.at(-1))} to ${short(high.at(-1))}).`;
}

/* How many points have each word, as bars; a click lists them. */
function bars(counts, onClick, className = "statuses") {
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const lines = counts.map(([name, count]) => {
    const bar = element("span", { className: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * count) / total}%`;
    const line = element("button", { type: "button", text: `${whole(count)} ${name}`, title: "List these points" });
    line.addEventListener("click", () => onClick(name));
    return element("li", {}, [line, bar]);
  });
  return element("ul", { className }, lines);
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
