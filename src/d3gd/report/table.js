// The page of a comparison, a sweep or a study: a table that sorts by any column, and curves that can be switched off.
const MOST = 500; // rows shown at once
const page = document.getElementById("page");
const sorting = {column: null, up: true}, hidden = new Set();
const body = element("tbody"), told = element("p", {class: "quiet", id: "told"});
const sorted = DATA.columns.map((_, i) => DATA.rows.some(row => typeof row.cells[i][0] === "number")); // as numbers
const heads = DATA.columns.map((name, i) => element("th", {scope: "col", class: sorted[i] ? "number" : null},
  element("button", {type: "button", click: () => sort(i)}, name)));
const LONG = DATA.rows.length > 30;
const filter = element("input", {type: "search", id: "filter", placeholder: "show rows with …", "aria-label": "show rows with", input: () => fill()});

function sort(column) {
  sorting.up = sorting.column === column ? !sorting.up : true;
  sorting.column = column;
  fill();
}

// Of a long table, a list for every column with few values; what all rows that are left have in common needs no column.
const picks = DATA.columns.map((name, i) => {
  const values = [...new Set(DATA.rows.map(row => row.cells[i][1]))];
  if (!LONG || values.length < 2 || values.length > 30 || values.length > DATA.rows.length / 5) return null;
  return element("select", {"aria-label": name, "data-pick": name, change: () => fill()},
    element("option", {value: ""}, `${name}: all`), ...values.map((text, v) => element("option", {value: v, "data-text": text}, text || "–")));
});

function wanted(i) { return picks[i] && picks[i].value !== "" ? picks[i].selectedOptions[0].dataset.text : null; }

function fill() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = DATA.columns.map((_, i) => wanted(i));
  const has = row => words.every(word => row.cells.some(([, text]) => text.toLowerCase().includes(word)))
    && chosen.every((text, i) => text === null || row.cells[i][1] === text);
  const rows = DATA.rows.filter(has);
  const common = DATA.columns.map((_, i) => LONG && rows.length > 0 && rows.every(row => row.cells[i][1] === rows[0].cells[i][1]));
  if (sorting.column !== null) {
    const sign = sorting.up ? 1 : -1, key = row => row.cells[sorting.column][0];
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null); // always last
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }
  heads.forEach((head, i) => head.setAttribute("aria-sort", i !== sorting.column ? "none" : sorting.up ? "ascending" : "descending"));
  heads.forEach((head, i) => head.toggleAttribute("hidden", common[i]));
  body.replaceChildren(...rows.slice(0, MOST).map(row => element("tr", {class: row.class || null}, ...row.cells.map(([, text], i) =>
    element("td", {class: sorted[i] ? "number" : null, "data-column": DATA.columns[i], hidden: common[i]}, text)))));
  const same = DATA.columns.map((name, i) => (common[i] && rows[0].cells[i][1] ? `${name} ${rows[0].cells[i][1]}` : "")).filter(Boolean);
  told.textContent = (rows.length > MOST ? `The first ${MOST} of ${rows.length.toLocaleString("en")} rows; sort, choose or type words to see others.`
    : rows.length < DATA.rows.length ? `${rows.length.toLocaleString("en")} of ${DATA.rows.length.toLocaleString("en")} rows.` : "")
    + (same.length ? ` All of them: ${same.join("; ")}.` : "");
}

const NAMES = Object.keys(DATA.curves);
const AXES = Object.keys(DATA.axes).filter(axis => NAMES.some(name => DATA.curves[name][axis]));
const host = element("div");

function drawCurves(axis) {
  const names = NAMES.filter(name => DATA.curves[name][axis] && !hidden.has(name));
  const lines = names.map(name => ({...DATA.curves[name][axis], ...look(name), name}));
  toggles.forEach((toggle, i) => toggle.toggleAttribute("hidden", !DATA.curves[NAMES[i]][axis]));
  host.replaceChildren(new Chart(DATA.axes[axis].title, lines, {label: DATA.axes[axis].label, ...size()}).host);
}

function size() { return innerWidth < 700 ? {width: 440, height: 300} : {width: 900, height: 420}; } // text stays readable

function look(name) {
  const i = NAMES.indexOf(name);
  const dash = Math.floor(i / 7) % DASHES.length;
  return {colour: colour(i), dash: DASHES[dash], key: KEYS[dash]};
}

const axis = element("select", {id: "axis", "aria-label": "horizontal axis", change: event => drawCurves(event.target.value)},
  ...AXES.map(name => element("option", {value: name}, DATA.axes[name].choice)));
const toggles = NAMES.map(name => element("label", {class: "toggle"}, element("input", {type: "checkbox", checked: true,
  change: event => { if (event.target.checked) hidden.delete(name); else hidden.add(name); drawCurves(axis.value); }}),
  element("span", {style: `color:${look(name).colour}`}, `${look(name).key} ${name}`)));

fill();
const listed = [
  ...(DATA.rows.length > 12 ? [element("div", {class: "filters"}, filter, ...picks.filter(Boolean))] : []),
  ...(LONG ? [told] : []),
  element("div", {class: LONG ? "table long" : "table"}, element("table", {id: "ranking"}, element("thead", {}, element("tr", {}, ...heads)), body)),
  ...(LONG ? [] : [told]),
];
const drawn = NAMES.length ? [element("div", {class: LONG ? "bar loose" : "bar"}, element("label", {class: "quiet"}, DATA.choose, axis), element("div", {}, ...toggles)), host]
  : [element("p", {class: "quiet"}, DATA.without)];
page.replaceChildren(
  element("h1", {}, document.title),
  ...DATA.headline.map(text => element("p", {}, text)),
  ...(LONG ? [...drawn, ...listed] : [...listed, ...drawn]), // what a long table says is seen in its curves
  element("details", {open: true}, element("summary", {}, "How to read it"), ...DATA.reading.map(text => element("p", {class: "quiet"}, text))),
  element("details", {}, element("summary", {}, "Versions"), element("table", {}, element("tbody", {}, ...Object.entries(DATA.versions).map(([name, version]) =>
    element("tr", {}, element("th", {scope: "row"}, name), element("td", {}, version)))))),
);
if (LONG) document.head.append(element("style", {}, "@page { size: landscape }"));
if (NAMES.length) drawCurves(AXES[0]);
