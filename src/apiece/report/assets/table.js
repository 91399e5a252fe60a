"use strict";
/* A table of any length that keeps only the rows in sight; moved through by keyboard or pointer. */

const ROW_HEIGHT = 34;
const ROWS_BESIDE = 6; // rows kept above and below those in sight

/* Make an element. All text becomes text nodes: nothing a user wrote is ever markup. */
function element(name, { className, text, ...attributes } = {}, children = []) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/* Columns are { key, title, className, hint, fill(cell, point) }; the table tells of what happens
   through onSort(key), onOpen(point) and onSelect(point). */
function makeTable({ scroll, table, isSelected, isOpen, onSort, onOpen, onSelect }) {
  const [head, body] = [table.tHead, table.tBodies[0]];
  let columns = [];
  let headings = [];
  let rows = new Uint32Array(0);
  let focus = 0;
  let drawn = [0, 0];
  let isPrinting = false;

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

  function makeRow(index) {
    const point = rows[index];
    const row = element("tr", { "aria-rowindex": index + 2, "data-index": index });
    row.tabIndex = index === focus ? 0 : -1;
    row.classList.toggle("open", isOpen(point));
    row.classList.toggle("selected", isSelected(point));
    row.setAttribute("aria-selected", isSelected(point));
    for (const { className, fill } of columns) {
      const cell = element("td", { className });
      fill(cell, point);
      row.append(cell);
    }
    return row;
  }

  function spacer(count) {
    const row = element("tr", { className: "spacer", "aria-hidden": "true" });
    const cell = element("td"); // one cell: a wider one would count columns that are hidden
    cell.style.height = `${count * ROW_HEIGHT}px`;
    row.append(cell);
    return row;
  }

  function draw() {
    const seen = Math.ceil(scroll.clientHeight / ROW_HEIGHT);
    const first = Math.floor(scroll.scrollTop / ROW_HEIGHT) - ROWS_BESIDE;
    const from = isPrinting ? 0 : Math.max(0, Math.min(first, rows.length - seen));
    const to = Math.min(rows.length, isPrinting ? 40 : from + seen + 2 * ROWS_BESIDE);
    drawn = [from, to];
    const hadFocus = body.contains(document.activeElement) && document.activeElement.tagName === "TR";
    const made = [];
    for (let index = from; index < to; index++) made.push(makeRow(index));
    if (!isPrinting) {
      made.unshift(spacer(from));
      made.push(spacer(rows.length - to));
    }
    if (!rows.length) {
      const nothing = element("td", { colspan: 3, className: "nothing", text: "No point fits the filters." });
      made.splice(0, made.length, element("tr", {}, [nothing]));
    }
    body.replaceChildren(...made);
    if (hadFocus) body.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function move(to) {
    focus = Math.max(0, Math.min(rows.length - 1, to));
    const [top, height] = [focus * ROW_HEIGHT, scroll.clientHeight - head.offsetHeight];
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + ROW_HEIGHT > scroll.scrollTop + height) scroll.scrollTop = top + ROW_HEIGHT - height;
    draw();
    body.querySelector(`tr[data-index="${focus}"]`)?.focus({ preventScroll: true });
  }

  const page = () => Math.max(1, Math.floor(scroll.clientHeight / ROW_HEIGHT) - 2);
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
  let isAsked = false;
  scroll.addEventListener("scroll", () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      const from = Math.floor(scroll.scrollTop / ROW_HEIGHT);
      const to = Math.min(rows.length, from + Math.ceil(scroll.clientHeight / ROW_HEIGHT));
      if (from < drawn[0] || to > drawn[1]) draw();
    });
  });
  new ResizeObserver(() => draw()).observe(scroll);
  addEventListener("beforeprint", () => { isPrinting = true; draw(); });
  addEventListener("afterprint", () => { isPrinting = false; draw(); });

  return {
    draw,
    setColumns(wanted) {
      columns = wanted;
      headings = columns.map(heading);
      head.replaceChildren(element("tr", {}, headings));
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
      scroll.scrollTop = 0;
      focus = 0;
    },
  };
}
