"use strict";
/* A table of any length that keeps only the rows in sight; moved through by keyboard or pointer. */

const ROW_HEIGHT = 34;
const ROWS_BESIDE = 6; // rows kept above and below those in sight
const ROWS_ON_PAPER = 40;

/* Make an element. All text becomes text nodes: nothing a user wrote is ever markup. */
/** @param {string} name @param {Record<string, any>} options @param {(Node | string)[]} children @returns {any} */
function element(name, { className, text, ...attributes } = {}, children = []) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/* Columns are { key, title, className, hint, fill(cell, point) }, where `fill` may find a cell that
   it has filled before; the table tells of what happens through onSort(key), onOpen(point) and
   onSelect(point). */
function makeTable({ scroll, table, isSelected, isOpen, onSort, onOpen, onSelect }) {
  const [head, body] = [table.tHead, table.tBodies[0]];
  let columns = [];
  let headings = [];
  let rows = new Uint32Array(0);
  const pool = []; // the rows in sight
  let focus = 0;
  let drawn = [0, 0];
  let isPrinting = false;
  // Kept up to date by events: asking for them while the table changes would lay out the page.
  let [top, height] = [0, scroll.clientHeight];
  const [above, below] = [makeSpacer(), makeSpacer()];
  const nothing = element("tr", {}, [
    element("td", { colspan: 3, className: "nothing", text: "No point fits the filters." }),
  ]);

  body.replaceChildren(above, below, nothing);

  function heading({ key, title, className, hint }) {
    const cell = element("th", { className, scope: "col", "aria-sort": "none" });
    if (key) {
      const button = element("button", { type: "button", text: title, title: hint ?? "Sort" });
      button.addEventListener("click", () => onSort(key));
      cell.append(button);
    } else {
      cell.append(element("span", { className: "visually-hidden", text: title }));
    }
    return cell;
  }

  /* Rows are made once and filled again: moving the slider changes texts, not elements. */
  function makeRow() {
    return element("tr", {}, columns.map(({ className }) => element("td", { className })));
  }

  function fillRow(row, index) {
    const point = rows[index];
    row.setAttribute("aria-rowindex", index + 2);
    row.dataset.index = index;
    row.tabIndex = index === focus ? 0 : -1;
    row.className = `${isOpen(point) ? "open" : ""} ${isSelected(point) ? "selected" : ""}`.trim();
    row.setAttribute("aria-selected", isSelected(point));
    columns.forEach(({ fill }, j) => fill(row.cells[j], point));
  }

  function makeSpacer() {
    // One cell: a wider one would count columns that are hidden.
    return element("tr", { className: "spacer", "aria-hidden": "true" }, [element("td")]);
  }

  function draw() {
    const seen = Math.ceil(height / ROW_HEIGHT);
    const first = Math.floor(top / ROW_HEIGHT) - ROWS_BESIDE;
    const from = isPrinting ? 0 : Math.max(0, Math.min(first, rows.length - seen));
    const to = Math.min(rows.length, isPrinting ? ROWS_ON_PAPER : from + seen + 2 * ROWS_BESIDE);
    drawn = [from, to];
    const hadFocus = body.contains(document.activeElement);
    while (pool.length > to - from) pool.pop().remove();
    while (pool.length < to - from) {
      pool.push(makeRow());
      below.before(pool.at(-1));
    }
    pool.forEach((row, j) => fillRow(row, from + j));
    above.cells[0].style.height = `${isPrinting ? 0 : from * ROW_HEIGHT}px`;
    below.cells[0].style.height = `${isPrinting ? 0 : (rows.length - to) * ROW_HEIGHT}px`;
    nothing.hidden = rows.length > 0;
    if (hadFocus && !body.contains(document.activeElement)) focusRow();
  }

  /* Give the row that is walked to the focus, which a row that went away has lost. */
  function focusRow() {
    body.querySelector(`tr[data-index="${focus}"]`)?.focus({ preventScroll: true });
  }

  function move(to) {
    focus = Math.max(0, Math.min(rows.length - 1, to));
    const [start, room] = [focus * ROW_HEIGHT, height - head.offsetHeight];
    if (start < top) scroll.scrollTop = start;
    if (start + ROW_HEIGHT > top + room) scroll.scrollTop = start + ROW_HEIGHT - room;
    top = scroll.scrollTop;
    draw();
    focusRow();
  }

  const page = () => Math.max(1, Math.floor(height / ROW_HEIGHT) - 2);
  const moves = {
    ArrowDown: () => focus + 1,
    ArrowUp: () => focus - 1,
    PageDown: () => focus + page(),
    PageUp: () => focus - page(),
    Home: () => 0,
    End: () => rows.length - 1,
  };
  body.addEventListener("keydown", (event) => {
    if (event.target.tagName !== "TR") return;
    if (event.key in moves) move(moves[event.key]());
    else if (event.key === "Enter") onOpen(rows[focus]);
    else if (event.key === " ") onSelect(rows[focus]);
    else return;
    event.preventDefault();
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-index]");
    if (!row) return;
    focus = Number(row.dataset.index);
    if (event.target.matches("input")) onSelect(rows[focus]);
    else onOpen(rows[focus]);
  });
  /* Let columns that go on beyond the right edge fade out there, next to the scroll bar. */
  function fade() {
    const edge = scroll.parentElement;
    edge.classList.toggle("more", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1);
    edge.style.setProperty("--bar", `${scroll.offsetWidth - scroll.clientWidth - 1}px`);
  }

  scroll.addEventListener("scroll", () => {
    fade();
    top = scroll.scrollTop;
    const from = Math.floor(top / ROW_HEIGHT);
    const to = Math.min(rows.length, from + Math.ceil(height / ROW_HEIGHT));
    if (from < drawn[0] || to > drawn[1]) draw();
  });
  new ResizeObserver(() => {
    height = scroll.clientHeight;
    fade();
    draw();
  }).observe(scroll);
  addEventListener("beforeprint", () => { isPrinting = true; draw(); });
  addEventListener("afterprint", () => { isPrinting = false; draw(); });

  return {
    draw,
    setColumns(wanted) {
      columns = wanted;
      pool.splice(0).forEach((row) => row.remove());
      headings = columns.map(heading);
      head.replaceChildren(element("tr", {}, headings));
      fade();
    },
    show(points, sort) {
      rows = points;
      focus = Math.min(focus, Math.max(0, rows.length - 1));
      table.setAttribute("aria-rowcount", rows.length + 1);
      headings.forEach((cell, j) => {
        const isSorted = columns[j].key && columns[j].key === sort.key;
        cell.setAttribute("aria-sort", isSorted ? (sort.falling ? "descending" : "ascending") : "none");
      });
      draw();
    },
    toTop() {
      scroll.scrollTop = top = focus = 0;
    },
  };
}
