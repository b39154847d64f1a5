const data = JSON.parse(document.getElementById("page-data").textContent);
const $ = (id) => document.getElementById(id);
const kinds = {float32: Float32Array, int32: Int32Array, uint8: Uint8Array, uint16: Uint16Array};

function unpack(packed) {
  if (!packed) return null;
  const text = atob(packed.data), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return new kinds[packed.type](bytes.buffer);
}
function show(value, digits = 4) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e5)) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    const raised = String(Number(power)).replace(/./g, (mark) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(mark)]);
    return `${mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa}×10${raised}`.replace("-", "−");
  }
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}
const withUnit = (item) => (item.unit ? `${item.name} (${item.unit})` : item.name);
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value; else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const shades = Object.fromEntries(Object.entries(data.colours).map(([name, text]) =>
  [name, Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16))]));
const LINES = ["--ink", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const lineColour = (k) => (k === 0 ? colour("--ink") : LINES[1 + ((k - 1) % 6)]);

// -- a canvas with axes, drawn again when its size or the theme changes ------------------------
const plots = [];
class Plot {
  constructor(holder, draw) {
    this.holder = holder; this.canvas = holder.querySelector("canvas"); this.draw = draw;
    holder.hidden = false;
    plots.push(this);
    new ResizeObserver(() => this.redraw()).observe(holder);
  }
  redraw() {
    if (this.shape) {
      const height = Math.round(Math.min(0.7 * window.innerHeight, Math.max(170, (this.holder.clientWidth - 125) * this.shape() + 52)));
      if (Math.abs(height - this.holder.clientHeight) > 1) this.holder.style.height = `${height}px`;
    }
    const box = this.holder.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    if (!box.width || !box.height) return;
    this.width = box.width; this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio); this.canvas.height = Math.round(box.height * ratio);
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.clearRect(0, 0, this.width, this.height);
    this.pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    this.draw(this);
  }
  // Axes: x and y are {low, high, label, log}; gives functions from values to places.
  frame(x, y, {right = 10, top = 10, equal = false} = {}) {
    const pen = this.pen, bottom = 40;
    const yTicks = ticks(y, Math.max(2, Math.floor((this.height - bottom) / 45)));
    const widest = Math.max(...yTicks.map((t) => pen.measureText(t.text).width), 0);
    const left = Math.ceil(widest) + 30;
    this.area = {left, top, right: this.width - right, bottom: this.height - bottom};
    const a = this.area;
    if (equal) {
      // One unit of length is as long across as up.
      const ratio = (y.high - y.low) / (x.high - x.low), width = a.right - a.left, height = a.bottom - a.top;
      if (width * ratio < height) a.bottom = a.top + width * ratio; else a.right = a.left + height / ratio;
    }
    const scale = (axis, from, to) => {
      const f = axis.log ? Math.log10 : (v) => v, low = f(axis.low), span = f(axis.high) - low || 1;
      return (v) => from + ((f(v) - low) / span) * (to - from);
    };
    const px = scale(x, a.left, a.right), py = scale(y, a.bottom, a.top);
    pen.strokeStyle = colour("--line"); pen.fillStyle = colour("--soft"); pen.lineWidth = 1;
    pen.textAlign = "center"; pen.textBaseline = "top";
    let reached = -Infinity;
    for (const tick of ticks(x, Math.max(2, Math.floor((a.right - a.left) / 70)))) {
      const place = px(tick.value), half = pen.measureText(tick.text).width / 2;
      const shown = Math.min(Math.max(place, half), this.width - half - 1);
      if (shown - half < reached + 6) continue;
      line(pen, place, a.bottom, place, a.bottom + 4);
      pen.fillText(tick.text, shown, a.bottom + 6); reached = shown + half;
    }
    pen.textAlign = "right"; pen.textBaseline = "middle";
    for (const tick of yTicks) {
      const place = py(tick.value);
      line(pen, a.left - 4, place, a.left, place);
      pen.fillText(tick.text, a.left - 7, place);
    }
    pen.textAlign = "right"; pen.textBaseline = "bottom"; pen.fillText(x.label || "", a.right, a.bottom + 38);
    pen.save(); pen.translate(11, a.top); pen.rotate(-Math.PI / 2); pen.textAlign = "right"; pen.textBaseline = "middle";
    pen.fillText(y.label || "", 0, 0); pen.restore();
    pen.strokeRect(a.left + 0.5, a.top + 0.5, a.right - a.left - 1, a.bottom - a.top - 1);
    return {px, py};
  }
}
function line(pen, x1, y1, x2, y2) { pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); }
function ticks(axis, most) {
  const found = [];
  if (axis.log) {
    const low = Math.ceil(Math.log10(axis.low) - 1e-9), high = Math.floor(Math.log10(axis.high) + 1e-9);
    const step = Math.max(1, Math.ceil((high - low) / most));
    for (let k = low; k <= high; k += step) found.push({value: 10 ** k, text: show(10 ** k).replace(/^1×/, "")});
    return found;
  }
  const span = axis.high - axis.low;
  if (!(span > 0)) return [{value: axis.low, text: show(axis.low)}];
  const raw = span / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= raw * 0.999);
  const digits = Math.max(1, Math.min(8, Math.ceil(Math.log10(Math.max(Math.abs(axis.low), Math.abs(axis.high)) / step)) + 2));
  for (let k = Math.ceil(axis.low / step - 1e-6); k * step <= axis.high + 1e-6 * step; k++) {
    const value = k * step;
    found.push({value, text: show(Math.abs(value) < 1e-9 * span ? 0 : value, digits)});
  }
  return found;
}
// Whether two coordinates are both of space, in one unit, and not of too different lengths.
function lengths(a, b) {
  const [one, other] = [a, b].map((axis) => data.coordinates.find((c) => c.name === axis.name));
  if (!one || !other || one.time || other.time || one.unit !== other.unit) return false;
  const ratio = (other.high - other.low) / (one.high - one.low);
  return ratio > 0.25 && ratio < 4;
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { plots.forEach((p) => p.redraw()); legends(); });

function buttons(holder, names, choose) {
  holder.replaceChildren(...names.map((name, k) => {
    const button = make("button", {type: "button", text: name, "aria-pressed": String(k === 0)});
    button.addEventListener("click", () => {
      for (const other of holder.children) other.setAttribute("aria-pressed", String(other === button));
      choose(k);
    });
    return button;
  }));
  holder.hidden = names.length < 2;
}
const readings = data.readings && {
  ...data.readings, row: unpack(data.readings.row), sensor: unpack(data.readings.sensor),
  points: data.readings.points.map(unpack), misfit: unpack(data.readings.misfit), score: unpack(data.readings.score),
  posterior: unpack(data.readings.posterior), suspects: unpack(data.readings.suspects),
  quantities: data.readings.quantities.map((q) => ({...q, value: unpack(q.value), predicted: unpack(q.predicted)})),
};
const along = (name) => readings.points[data.coordinates.findIndex((c) => c.name === name)];

// -- fields ------------------------------------------------------------------------------------
function fields() {
  if (!data.fields.length) return;
  let chosen = data.fields[0], version = 0, frame = 0;
  const raw = new Map(), image = document.createElement("canvas");
  const dots = $("field-dots"), step = $("field-frame");
  const values = () => {
    const key = `${chosen.name}|${version}`;
    if (!raw.has(key)) raw.set(key, unpack(chosen.versions[version].values));
    return raw.get(key);
  };
  const value = (k) => { const v = chosen.versions[version]; return v.low + (values()[k] / 65535) * (v.high - v.low); };
  const axis = (name, low, high) => ({low, high, label: withUnit(data.coordinates.find((c) => c.name === name) || {name})});
  function paint() {
    const [, rows, columns] = chosen.shape, ramp = shades[chosen.versions[version].change ? "change" : "field"];
    image.width = columns; image.height = rows;
    const pen = image.getContext("2d"), pixels = pen.createImageData(columns, rows), v = values();
    for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
      const shade = v[(frame * rows + r) * columns + c] >> 8, k = 4 * ((rows - 1 - r) * columns + c);
      pixels.data.set(ramp.subarray(3 * shade, 3 * shade + 3), k); pixels.data[k + 3] = 255;
    }
    pen.putImageData(pixels, 0, 0);
  }
  function near() {
    // The readings of the shown quantity, those close to the frame where one is stepped through.
    const q = readings && readings.quantities.find((one) => one.name === chosen.name);
    if (!q) return [];
    const found = [], f = chosen.frames, along_ = f && along(f.name);
    const reach = f ? (f.high - f.low) / (2 * (f.values.length - 1)) : 0;
    for (let k = 0; k < readings.shown; k++) {
      if (Number.isNaN(q.value[k]) || (f && Math.abs(along_[k] - f.values[frame]) > reach)) continue;
      found.push(k);
    }
    return found;
  }
  function mark(pen, x, y, bad) {
    pen.beginPath(); pen.arc(x, y, 2.6, 0, 7); pen.fillStyle = bad ? "#ff7a2f" : "#ffffff"; pen.fill();
    pen.lineWidth = 0.8; pen.strokeStyle = "rgba(0,0,0,.65)"; pen.stroke();
  }
  function drawPicture(plot) {
    const v = chosen.versions[version], across = axis(chosen.across.name, chosen.across.low, chosen.across.high);
    if (!chosen.up) return drawLine(plot, across);
    const up = axis(chosen.up.name, chosen.up.low, chosen.up.high);
    const {px, py} = plot.frame(across, up, {right: 84, top: 26, equal: lengths(chosen.across, chosen.up)}), a = plot.area, pen = plot.pen;
    pen.imageSmoothingEnabled = true; pen.imageSmoothingQuality = "high";
    pen.drawImage(image, a.left + 1, a.top + 1, a.right - a.left - 2, a.bottom - a.top - 2);
    if (dots.checked) for (const k of near()) mark(pen, px(along(chosen.across.name)[k]), py(along(chosen.up.name)[k]), readings.suspects[k]);
    const bar = pen.createLinearGradient(0, a.bottom, 0, a.top), ramp = shades[v.change ? "change" : "field"];
    for (let k = 0; k <= 16; k++) bar.addColorStop(k / 16, `rgb(${ramp.slice(3 * Math.round(k * 15.9375), 3 * Math.round(k * 15.9375) + 3).join(",")})`);
    pen.fillStyle = bar; pen.fillRect(a.right + 10, a.top, 11, a.bottom - a.top);
    pen.fillStyle = colour("--soft"); pen.textAlign = "left"; pen.textBaseline = "middle";
    pen.textAlign = "right"; pen.fillText(withUnit(chosen), a.right + 82, a.top - 14); pen.textAlign = "left";
    for (const t of ticks(v, 5)) pen.fillText(t.text, a.right + 26, a.bottom - ((t.value - v.low) / (v.high - v.low)) * (a.bottom - a.top));
  }
  function drawLine(plot, across) {
    const v = chosen.versions[version], label = withUnit(chosen), n = chosen.shape[2], q = dots.checked && near();
    let low = v.low, high = v.high;
    const read = q && readings.quantities.find((one) => one.name === chosen.name);
    if (read && !v.change) for (const k of q) { low = Math.min(low, read.value[k]); high = Math.max(high, read.value[k]); }
    const {px, py} = plot.frame(across, {low, high, label}), pen = plot.pen;
    pen.beginPath(); pen.strokeStyle = colour("--good"); pen.lineWidth = 2;
    for (let k = 0; k < n; k++) { const x = px(across.low + (k / (n - 1)) * (across.high - across.low)); k ? pen.lineTo(x, py(value(k))) : pen.moveTo(x, py(value(k))); }
    pen.stroke();
    if (read && !v.change) for (const k of q) mark(pen, px(along(chosen.across.name)[k]), py(read.value[k]), readings.suspects[k]);
  }
  const plot = new Plot($("field-plot"), drawPicture);
  plot.shape = () => {
    const wide = 0.62;
    if (!chosen.up || !lengths(chosen.across, chosen.up)) return plot.holder.clientWidth < 600 ? 0.9 : wide;
    return (chosen.up.high - chosen.up.low) / (chosen.across.high - chosen.across.low);
  };
  function update() {
    $("field-step").hidden = !chosen.frames;
    if (chosen.frames) {
      step.max = chosen.frames.values.length - 1; step.value = frame;
      const unit = (data.coordinates.find((c) => c.name === chosen.frames.name) || {}).unit || "";
      $("field-frame-label").textContent = `${chosen.frames.name} = ${show(chosen.frames.values[frame])} ${unit}`;
    }
    $("field-dots-label").hidden = !(readings && chosen.observed);
    paint(); plot.redraw();
    plot.canvas.setAttribute("aria-label", `Picture of ${chosen.name}, ${chosen.versions[version].name}, from ${show(chosen.versions[version].low)} to ${show(chosen.versions[version].high)} ${chosen.unit}`);
  }
  function start(k) {
    chosen = data.fields[k]; frame = Math.floor(chosen.shape[0] / 2); version = 0;
    buttons($("field-versions"), chosen.versions.map((v) => v.name), (n) => { version = n; update(); });
    update();
  }
  buttons($("field-names"), data.fields.map((f) => withUnit(f)), start);
  step.addEventListener("input", () => { frame = Number(step.value); update(); });
  dots.addEventListener("change", update);
  $("field-tools").hidden = false; $("field-readout").hidden = false;
  plot.canvas.addEventListener("pointermove", (event) => {
    const a = plot.area, box = plot.canvas.getBoundingClientRect();
    const fx = (event.clientX - box.left - a.left) / (a.right - a.left), fy = (a.bottom - (event.clientY - box.top)) / (a.bottom - a.top);
    if (fx < 0 || fx > 1 || fy < 0 || fy > 1) return;
    const [, rows, columns] = chosen.shape, c = Math.round(fx * (columns - 1)), r = Math.round(fy * (rows - 1));
    const at = (ax, f) => `${ax.name} = ${show(ax.low + f * (ax.high - ax.low))}`;
    const place = chosen.up ? `${at(chosen.across, fx)}, ${at(chosen.up, fy)}` : at(chosen.across, fx);
    const held = Object.entries(chosen.fixed).map(([n, v]) => `, ${n} = ${show(v)}`).join("");
    $("field-readout").textContent = `${chosen.name} = ${show(value((frame * rows + (chosen.up ? r : 0)) * columns + c))} ${chosen.unit} at ${place}${held}`;
  });
  start(0);
}
