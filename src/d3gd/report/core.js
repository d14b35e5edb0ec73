// What all pages share: reading the data, making elements, showing numbers. Text only enters through textContent.
const SVG = "http://www.w3.org/2000/svg";
const DATA = JSON.parse(document.getElementById("data").textContent);
const CLASSES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#332288", "#882255"];
const DASHES = ["", "7 3", "7 3 2 3", "2 3"];
const KEYS = ["━━", "╍╍", "━·", "··"]; // the dashes as text

function element(tag, attributes, ...children) {
  const svg = tag.startsWith("svg:");
  const made = svg ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.map(child => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

function unpacked(array) {
  if (array === null) return null;
  const bytes = Uint8Array.from(atob(array.base64), character => character.charCodeAt(0));
  const view = new DataView(bytes.buffer), size = bytes.length / 4;
  const values = array.type === "i4" ? new Int32Array(size) : new Float32Array(size);
  for (let i = 0; i < size; i++) values[i] = array.type === "i4" ? view.getInt32(4 * i, true) : view.getFloat32(4 * i, true);
  return {values, shape: array.shape, row: i => values.subarray(i * array.shape[1], (i + 1) * array.shape[1])};
}

// Four digits, as `%.4g` in Python: the tests compare what is shown with the run's own numbers.
function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const exponent = Number(value.toExponential(3).split("e")[1]);
  if (exponent < -4 || exponent >= 5) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(4)));
}

function bytes(value) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit++; }
  return `${number(value)} ${units[unit]}`;
}

function colour(i) { return `var(--c${i % 7})`; }

// The last position whose value is at most `wanted`; values ascend.
function upTo(values, wanted) {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (values[middle] <= wanted) low = middle; else high = middle - 1;
  }
  return low;
}

function shortened(text, length) { return [...text].length > length ? [...text].slice(0, length - 1).join("") + "…" : text; }

// Cividis, which looks alike to people with and without colour blindness.
const RAMP = [[0, 34, 78], [50, 68, 107], [102, 105, 112], [151, 143, 120], [204, 184, 100], [254, 232, 56]];
function ramp(share) {
  if (!Number.isFinite(share)) return "var(--line)";
  const at = Math.min(1, Math.max(0, share)) * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(at));
  const mixed = RAMP[i].map((low, c) => Math.round(low + (at - i) * (RAMP[i + 1][c] - low)));
  return `rgb(${mixed.join(",")})`;
}
