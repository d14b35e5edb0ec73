// Curves with axes: a metric of several runs, linear or logarithmic, with a time cursor.
class Chart {
  // lines: [{x, y, low?, high?, colour, dash, name}]; onMove(x) is called while a pointer is on the chart.
  constructor(title, lines, {onMove = null, label = "", forceLinear = false, width = 440, height = 230} = {}) {
    Object.assign(this, {title, lines, label, forceLinear, width, height, right: width - 12, bottom: height - 32});
    this.values = element("div", {class: "values"});
    this.svg = element("svg:svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} over ${label}`});
    this.host = element("section", {class: "card chart"}, element("h2", {}, title), this.values, this.svg);
    if (onMove) {
      const move = event => { if (event.type === "pointerdown" || event.buttons) onMove(this.at(event)); };
      this.svg.addEventListener("pointerdown", move);
      this.svg.addEventListener("pointermove", move);
    }
    this.draw();
  }

  at(event) {
    const box = this.svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * this.width;
    return this.first + ((x - 56) / (this.right - 56)) * (this.last - this.first);
  }

  draw() {
    const lines = this.lines;
    const finite = lines.flatMap(line => line.y.filter(value => value !== null && Number.isFinite(value)));
    const positive = finite.filter(value => value > 0), xs = lines.flatMap(line => [line.x[0], line.x[line.x.length - 1]]);
    const smallest = values => values.reduce((a, b) => Math.min(a, b), Infinity); // spreading many would overflow the stack
    let low = smallest(finite), high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
    const least = smallest(positive);
    this.log = !this.forceLinear && positive.length > 0 && low >= 0 && high > 10 * least;
    if (this.log) low = least;
    if (!finite.length) [low, high] = [0, 1];
    if (low === high) [low, high] = this.log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
    this.first = Math.min(...[...xs, Infinity]);
    this.last = Math.max(...[...xs, -Infinity]);
    if (!(this.last > this.first)) [this.first, this.last] = [xs.length ? xs[0] : 0, (xs.length ? xs[0] : 0) + 1];
    this.sx = x => 56 + ((this.right - 56) * (x - this.first)) / (this.last - this.first);
    const scale = this.log ? Math.log10 : value => value;
    this.sy = y => this.bottom - ((this.bottom - 14) * (scale(y) - scale(low))) / (scale(high) - scale(low));
    this.svg.replaceChildren(this.axes(low, high));
    for (const line of lines) {
      if (line.low) this.svg.append(element("svg:path", {class: "band", d: this.band(line), style: `fill:${line.colour}`}));
    }
    for (const line of lines) {
      this.svg.append(element("svg:path", {
        class: "curve", d: this.path(line.x, line.y), style: `stroke:${line.colour}`, "stroke-dasharray": line.dash || null,
      }, element("svg:title", {}, line.name)));
    }
    this.cursor = element("svg:line", {class: "cursor", y1: 10, y2: this.bottom, x1: -9, x2: -9});
    this.svg.append(this.cursor);
  }

  visible(y) { return y !== null && Number.isFinite(y) && (!this.log || y > 0); }

  path(x, y) {
    let d = "", pen = "M";
    for (let i = 0; i < x.length; i++) {
      if (!this.visible(y[i])) { pen = "M"; continue; }
      d += `${pen}${this.sx(x[i]).toFixed(1)} ${this.sy(y[i]).toFixed(1)}${pen === "M" ? "h0" : ""}`; // one value alone is a dot
      pen = "L";
    }
    return d;
  }

  band(line) {
    const fit = value => Math.min(this.bottom + 18, Math.max(0, this.sy(value)));
    const seen = line.x.map((_, i) => i).filter(i => this.visible(line.low[i]) && this.visible(line.high[i]));
    const side = (order, values) => order.map(i => `${this.sx(line.x[i]).toFixed(1)} ${fit(values[i]).toFixed(1)}`);
    return seen.length ? `M${[...side(seen, line.high), ...side(seen.slice().reverse(), line.low)].join("L")}Z` : "";
  }

  axes(low, high) {
    const axis = element("svg:g", {class: "axis"}, element("svg:path", {d: `M56 10V${this.bottom}H${this.right}`}));
    const ticks = this.log ? this.decades(low, high) : this.round(low, high);
    for (const tick of ticks) {
      const y = this.sy(tick);
      axis.append(element("svg:line", {x1: 52, x2: this.right, y1: y, y2: y}));
      axis.append(element("svg:text", {x: 48, y: y + 4, "text-anchor": "end"}, this.short(tick)));
    }
    for (const x of this.round(this.first, this.last)) {
      const anchor = this.sx(x) > this.right - 20 ? "end" : "middle"; // what is centred on the edge would be cut off
      axis.append(element("svg:line", {x1: this.sx(x), x2: this.sx(x), y1: this.bottom, y2: this.bottom + 4}));
      axis.append(element("svg:text", {x: this.sx(x), y: this.bottom + 15, "text-anchor": anchor}, this.short(x)));
    }
    axis.append(element("svg:text", {x: (this.right + 56) / 2, y: this.height - 3, "text-anchor": "middle"}, this.label));
    return axis;
  }

  short(value) {
    const size = Math.abs(value), plain = String(Number(value.toPrecision(6)));
    if (!size || (size >= 1e-3 && size < 1e5) || plain.length < 6) return plain;
    return String(value.toExponential(2)).replace(/\.?0*e\+?/, "e");
  }

  // Round numbers in a range: three to seven of them, multiples of 1, 2 or 5 times a power of ten.
  round(low, high) {
    const power = 10 ** Math.floor(Math.log10((high - low) / 4)), found = [];
    const step = [1, 2, 5, 10].map(times => times * power).find(each => (high - low) / each <= 6.01);
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return found.length ? found : [low, high];
  }

  decades(low, high) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first + 1) / 5)), found = [];
    for (let power = first; power <= last; power += step) found.push(10 ** power);
    return found.length ? found : [low, high];
  }

  // Move the cursor to x, and show every line's last value up to there.
  move(x) {
    const place = this.sx(Math.min(this.last, Math.max(this.first, x)));
    this.cursor.setAttribute("x1", place);
    this.cursor.setAttribute("x2", place);
    this.values.replaceChildren(...this.lines.map(line => element("span", {style: `color:${line.colour}`},
      (this.lines.length > 1 ? `${shortened(line.name, 24)} ` : "") + number(line.y[upTo(line.x, x)]))));
  }
}
