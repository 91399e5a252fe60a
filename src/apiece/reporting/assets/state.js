"use strict";
/* What the page shows now: the report, what its reader has chosen, and what follows from that. */

/** @type {(id: string) => HTMLInputElement} what most elements that are looked up are */
const $ = (id) => /** @type {HTMLInputElement} */ (document.getElementById(id));

/** @type {Report} */
let report; // the description and arrays, as data.js reads them
/** @type {ReturnType<typeof makeLaws>} */
let laws;
let columns;
/** @type {Record<string, any>} */
const charts = {};
const state = {
  k: 1,
  sort: { key: "interval", falling: true },
  region: null, // { x: [low, high], y: [low, high] } in the plane's axes
  open: -1,
  other: -1,
};
/** @type {Float64Array} by point, at the size that is shown */
let value, lows, highs, rank;
/** @type {Uint32Array} points */
let byValue, listed;
/** @type {Uint8Array} by point */
let isListed, selected;
/** @type {string[] | null} */
let searched;
let pick;
