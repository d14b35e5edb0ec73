// The page of a comparison: a table that sorts by any column, and curves that can be switched off.
const page = document.getElementById("page");
const wide = value => (value === "inf" ? Infinity : value === null ? NaN : value);
const short = value => (value === Infinity ? "∞" : number(value));
const measured = row => row.status === "ranked" || row.status === "yardstick";
const median = row => wide(row.value.median);
const COLUMNS = [
  ["rank", row => (row.rank === null ? NaN : row.rank), row => (row.rank === null ? "–" : row.rank)],
  ["method", row => row.method, row => row.method],
  ["knows", row => row.needs, row => row.needs],
  ["step", row => wide(row.step), row => short(wide(row.step))],
  [DATA.metric, median, row => (measured(row)
    ? `${short(median(row))} [${short(wide(row.value.low))}, ${short(wide(row.value.high))}]` : row.status)],
  ["disagreement", row => wide(row.disagreement), row => short(wide(row.disagreement))],
  ...Object.keys(DATA.rows[0] ? DATA.rows[0].cost : {}).map(name => [`${name} to target`, row => (measured(row) ? wide(row.cost[name]) : NaN),
    row => (!measured(row) ? "–" : name === "bytes" && Number.isFinite(wide(row.cost[name])) ? bytes(row.cost[name]) : short(wide(row.cost[name])))]),
  ["numbers per link", row => wide(row.numbers), row => short(wide(row.numbers))],
  ["note", row => row.note, row => [row.ties.length ? `ties with ${row.ties.join(", ")}` : "", row.note].filter(Boolean).join("; ")],
];
const sorting = {column: null, up: true};
const body = element("tbody");
const heads = COLUMNS.map(([name], i) => element("th", {scope: "col"}, element("button", {type: "button", click: () => sort(i)}, name)));

function sort(column) {
  sorting.up = sorting.column === column ? !sorting.up : true;
  sorting.column = column;
  fill();
}

function fill() {
  const rows = DATA.rows.slice();
  if (sorting.column !== null) {
    const key = COLUMNS[sorting.column][1], sign = sorting.up ? 1 : -1;
    const missing = value => typeof value === "number" && Number.isNaN(value);
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (missing(x) || missing(y)) return missing(x) - missing(y); // always last
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }
  heads.forEach((head, i) => head.setAttribute("aria-sort", i !== sorting.column ? "none" : sorting.up ? "ascending" : "descending"));
  body.replaceChildren(...rows.map(row => element("tr", {class: row.status}, ...COLUMNS.map(([, key, text]) =>
    element("td", {class: typeof key(row) === "number" ? "number" : null}, text(row))))));
}

const METHODS = Object.keys(DATA.curves);
const AXES = Object.keys(DATA.axes).filter(axis => METHODS.some(name => DATA.curves[name][axis]));
const hidden = new Set();
const host = element("div");

function drawCurves(axis) {
  const names = METHODS.filter(name => DATA.curves[name][axis] && !hidden.has(name));
  const lines = names.map(name => ({...DATA.curves[name][axis], ...look(name), name}));
  const chart = new Chart(DATA.metric, lines, {label: DATA.axes[axis], width: 900, height: 420});
  host.replaceChildren(chart.host);
}

function look(name) {
  const i = METHODS.indexOf(name);
  return {colour: colour(i), dash: DASHES[Math.floor(i / 7) % DASHES.length]};
}

const axis = element("select", {id: "axis", "aria-label": "horizontal axis", change: event => drawCurves(event.target.value)},
  ...AXES.map(name => element("option", {value: name}, DATA.axes[name])));
const toggles = METHODS.map(name => element("label", {class: "toggle"}, element("input", {type: "checkbox", checked: true,
  change: event => { if (event.target.checked) hidden.delete(name); else hidden.add(name); drawCurves(axis.value); }}),
  element("span", {style: `color:${look(name).colour}`}, `${look(name).dash ? "┄" : "━"} ${name}`)));

fill();
page.replaceChildren(
  element("h1", {}, document.title),
  element("p", {}, DATA.headline),
  element("div", {class: "table"}, element("table", {id: "ranking"}, element("thead", {}, element("tr", {}, ...heads)), body)),
  ...(METHODS.length ? [element("div", {class: "bar"}, element("label", {class: "quiet"}, "against ", axis), element("div", {}, ...toggles)), host]
    : [element("p", {class: "quiet"}, "The curves are not in this folder: only its tables are.")]),
  element("details", {open: true}, element("summary", {}, "How to read it"), ...DATA.reading.map(text => element("p", {class: "quiet"}, text))),
  element("details", {}, element("summary", {}, "Versions"), element("table", {}, element("tbody", {}, ...Object.entries(DATA.versions).map(([name, version]) =>
    element("tr", {}, element("th", {scope: "row"}, name), element("td", {}, version)))))),
);
if (METHODS.length) drawCurves(AXES[0]);
