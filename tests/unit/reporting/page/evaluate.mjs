/* Reads a report's bytes with the page's own scripts and prints what they compute, as JSON.

   node evaluate.mjs <assets folder> <payload file> <JSON of { sizes, pair, point, keys }> */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [assets, payload, asked] = process.argv.slice(2);
const { sizes, pairs, point, keys } = JSON.parse(asked);
const names = ["makeLaws", "orderOf", "ranksOf", "nearestTo", "readReport", "bytesOf", "csvOf"];
const source = ["data.js", "laws.js"].map((name) => readFileSync(join(assets, name), "utf8")).join("\n");
const page = vm.runInThisContext(`(() => { ${source}\nreturn { ${names.join(", ")} }; })()`);

const report = await page.readReport(page.bytesOf(readFileSync(payload).toString("base64")));
const laws = page.makeLaws(report);
const at = (k) => {
  const [value, low, high] = [0, 1, 2].map(() => new Float64Array(laws.n));
  laws.evaluate(k, value, low, high);
  return { value: [...value], low: [...low], high: [...high] };
};
const plain = (name, item) => (Number.isNaN(item) ? null : item);
const found = {
  at: sizes.map(at),
  crossings: pairs.map(([a, b]) => laws.crossings(a, b, ...report.k_range)),
  exponents: Array.from({ length: laws.n }, (_, i) => laws.exponent(i, report.k_ref)),
  near: page.nearestTo(report, point, 6),
  rising: [...page.orderOf(Float64Array.from(keys, (key) => key ?? NaN))],
  falling: [...page.orderOf(Float64Array.from(keys, (key) => key ?? NaN), true)],
  csv: page.csvOf([["=1+1", 'a"b', "-5", 3]]),
};
console.log(JSON.stringify(found, plain));
