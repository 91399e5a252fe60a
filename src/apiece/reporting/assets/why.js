"use strict";
/* Why a point is worth what it is: what is predicted for it, the scoring rows that gain and suffer
   most from it, and for which slices of the data it is good or bad. */

const percentOf = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)}\u00a0%`;

function showWhy() {
  const point = state.open;
  const { arrays } = report;
  $("why").hidden = !arrays.predicted && !arrays.predicted_value;
  if ($("why").hidden) return;
  $("why-words").textContent = predictionWords(point);
  $("why-rows").replaceChildren(...affectedRows(point));
  showSlices(point);
}

function predictionWords(point) {
  const { arrays, head } = report;
  if (arrays.predicted_value) {
    const [own, found] = [arrays.label_number[point], arrays.predicted_value[point]];
    const apart = own - found;
    const usual = head.rmse ? `, ${short(Math.abs(apart) / head.rmse, 2)} times the model's usual error` : "";
    return `A model that has not seen it predicts ${short(found, 4)}; its value is ${short(own, 4)}, ${short(Math.abs(apart), 3)} ${apart < 0 ? "less" : "more"}${usual}.`;
  }
  const predicted = report.classes[arrays.predicted[point]];
  const own = labelOf(point);
  const share = percentOf(arrays.predicted_p[point]);
  return predicted === own
    ? `A model that has not seen it predicts its label, ${own}, with probability ${share}.`
    : `A model that has not seen it predicts ${predicted} with probability ${share}; its label is ${own}, to which the model gives ${percentOf(arrays.own_p[point])}.`;
}

/* The rows that are predicted better with the point, and those that are predicted worse. */
function affectedRows(point) {
  const { why_row: rows, why_effect: effects } = report.arrays;
  if (!rows) return [];
  const { each } = report.why;
  const part = (title, from) => {
    const found = [];
    for (let j = point * 2 * each + from; j < point * 2 * each + from + each; j++) {
      if (rows[j] !== 0xffffffff) found.push(affectedRow(rows[j], effects[j]));
    }
    return found.length ? [element("h4", { text: title }), element("ul", { className: "near" }, found)] : [];
  };
  const by = `with it: change of their ${metricWords()}`;
  return [...part(`Predicted better ${by}`, 0), ...part(`Predicted worse ${by}`, each)];
}

function affectedRow(row, effect) {
  const { ids, labels, texts } = report.why.rows;
  const change = `${effect > 0 ? "−" : "+"}${brief(Math.abs(effect))}`;
  const mark = element("b", { className: effect > 0 ? "helps" : "harms", text: change, title: `Change of its ${metricWords()}, by a linear model of the features` });
  if (row < laws.n) {
    const line = otherPoint(row, [labelOf(row), textOf(row)].filter(Boolean).join(" · "));
    line.prepend(mark);
    return line;
  }
  const at = row - laws.n;
  const name = element("bdi", { text: ids[at] });
  return element("li", {}, [mark, name, element("span", { text: [labels[at], texts[at]].filter(Boolean).join(" · ") })]);
}

function showSlices(point) {
  const { slices, arrays } = report;
  $("slices-title").hidden = $("slices").hidden = !slices;
  if (!slices) return;
  const count = slices.names.length;
  const effects = Array.from(arrays.slice_effect.subarray(point * count, (point + 1) * count));
  const most = Math.max(...effects.map(Math.abs)) || 1;
  $("slices-title").textContent = `For whom it is good or bad: scoring rows by ${slices.by}`;
  $("slices").replaceChildren(...effects.map((effect, j) => {
    const bar = element("span", { className: `bar ${effect < 0 ? "harms" : "helps"}`, "aria-hidden": "true" });
    bar.style.width = `${(50 * Math.abs(effect)) / most}%`;
    bar.style.marginLeft = effect < 0 ? `${50 - (50 * Math.abs(effect)) / most}%` : "50%";
    const said = effect < 0 ? "worse" : "better";
    return element("li", {}, [
      element("span", { className: "name", text: `${slices.names[j]} (${whole(slices.counts[j])})` }),
      element("span", { className: "room" }, [bar]),
      element("span", { className: "number", text: `${said} by ${brief(Math.abs(effect))}` }),
    ]);
  }));
}
