"use strict";
/* The first screen: what was run, how good the fits are, what was spent; and the choices of filters. */

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
