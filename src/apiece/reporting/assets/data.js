"use strict";
/* From the page's bytes to a report: its description, with the arrays under `arrays`. */

const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
};

function bytesOf(base64) {
  const native = /** @type {any} */ (Uint8Array);
  if (native.fromBase64) return native.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** @returns {Promise<Report>} */
async function readReport(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const report = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  for (const [name, [kind, offset, count]] of Object.entries(report.arrays)) {
    report.arrays[name] = new ARRAY_TYPES[kind](buffer, start + offset, count);
  }
  return report;
}

/* One field of a CSV file (RFC 4180); text that a spreadsheet would compute gets an apostrophe. */
function csvField(value) {
  let text = String(value ?? "");
  if (/^[=@+\-\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && !Number.isFinite(+text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOf(rows) {
  return rows.map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
}
