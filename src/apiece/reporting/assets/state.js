"use strict";
/* What the page shows now: the report, what its reader has chosen, and what follows from that. */

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
let value, lows, highs, rank, byValue, listed, isListed, selected, searched, pick;
