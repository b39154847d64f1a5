// -- the map of readings -----------------------------------------------------------------------
function sensorName(k) { return readings.sensor ? readings.sensors[readings.sensor[k]] || "(unnamed)" : ""; }
function map() {
  if (!readings) return;
  const single = readings.quantities.length === 1;
  const columns = [
    ...data.coordinates.map((c, k) => ({...c, values: readings.points[k], ends: [c.low, c.high]})),
    ...readings.quantities.map((q) => ({name: q.name, unit: q.unit, values: q.value})),
    {name: "misfit", unit: single ? readings.quantities[0].unit : "", values: readings.misfit},
    {name: "score", unit: "", values: readings.score},
  ];
  const paints = [...(readings.judged ? ["suspect or retained"] : []), ...(readings.mixture ? ["posterior"] : []), "misfit"];
  const across = $("map-across"), up = $("map-up"), paint = $("map-colour"), sensor = $("map-sensor"), tip = $("map-tip");
  for (const [select, start] of [[across, data.map.across], [up, data.map.up]]) {
    columns.forEach((c, k) => select.append(make("option", {value: k, text: withUnit(c)})));
    select.value = Math.max(0, columns.findIndex((c) => c.name === start));
  }
  paints.forEach((name) => paint.append(make("option", {value: name, text: name})));
  if (sensor) {
    sensor.append(make("option", {value: "-1", text: "all"}));
    readings.sensors.forEach((name, k) => sensor.append(make("option", {value: k, text: name || "(unnamed)"})));
  }
  let places = [];
  const ends = (c) => {
    if (c.ends) return c.ends;
    let low = Infinity, high = -Infinity;
    for (const v of c.values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    const pad = 0.04 * (high - low) || 0.5;
    return [low - pad, high + pad];
  };
  let largest = 0;
  const sizes = Float32Array.from(readings.misfit, Math.abs).sort();
  largest = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
  function tint(k) {
    if (paint.value === "posterior") return ramp("field", readings.posterior[k]);
    if (paint.value === "misfit") return single ? ramp("change", 0.5 + readings.misfit[k] / (2 * largest)) : ramp("field", readings.misfit[k] / largest);
    return readings.suspects[k] ? colour("--bad") : colour("--good");
  }
  function ramp(name, level) {
    const k = 3 * Math.round(255 * Math.min(1, Math.max(0, level || 0)));
    return `rgb(${shades[name][k]},${shades[name][k + 1]},${shades[name][k + 2]})`;
  }
  const plot = new Plot($("map-plot"), () => {
    const x = columns[across.value], y = columns[up.value], [xl, xh] = ends(x), [yl, yh] = ends(y);
    const {px, py} = plot.frame({low: xl, high: xh, label: withUnit(x)}, {low: yl, high: yh, label: withUnit(y)}, {right: 14, equal: lengths(x, y)});
    const pen = plot.pen, only = sensor ? Number(sensor.value) : -1, radius = readings.shown > 5000 ? 1.8 : readings.shown > 1200 ? 2.6 : 3.6;
    places = [];
    // Suspects come first in the data and are drawn last, on top.
    for (let k = readings.shown - 1; k >= 0; k--) {
      if (only >= 0 && readings.sensor[k] !== only) continue;
      const at = {k, x: px(x.values[k]), y: py(y.values[k])};
      if (!Number.isFinite(at.x) || !Number.isFinite(at.y)) continue;
      places.push(at);
      pen.fillStyle = tint(k); pen.globalAlpha = 0.85; pen.beginPath();
      if (readings.suspects[k]) { pen.moveTo(at.x, at.y - radius * 1.45); pen.lineTo(at.x + radius * 1.35, at.y + radius); pen.lineTo(at.x - radius * 1.35, at.y + radius); }
      else pen.arc(at.x, at.y, radius, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
  });
  plot.shape = () => {
    const x = columns[across.value], y = columns[up.value];
    return lengths(x, y) ? (y.high - y.low) / (x.high - x.low) : plot.holder.clientWidth < 600 ? 0.9 : 0.5;
  };
  function nearest(event) {
    const box = plot.canvas.getBoundingClientRect(), mx = event.clientX - box.left, my = event.clientY - box.top;
    let best = null, distance = 18 * 18;
    for (const at of places) { const d = (at.x - mx) ** 2 + (at.y - my) ** 2; if (d <= distance) { distance = d; best = at; } }
    return best;
  }
  function tell(event) {
    const at = nearest(event);
    tip.hidden = !at;
    if (!at) return;
    const k = at.k, rows = [...data.coordinates.map((c, n) => [c.name, `${show(readings.points[n][k])} ${c.unit}`])];
    for (const q of readings.quantities) {
      if (!Number.isNaN(q.value[k])) rows.push([q.name, `${show(q.value[k])} ${q.unit}`]);
      rows.push([`${q.name} predicted`, `${show(q.predicted[k])} ${q.unit}`]);
    }
    rows.push(["misfit", show(readings.misfit[k], 3)]);
    if (readings.mixture) rows.push(["probably bad", `${(100 * readings.posterior[k]).toFixed(1)} %`]);
    const head = make("b", {text: `reading ${readings.row[k]}${readings.sensor ? `, ${sensorName(k)}` : ""}`});
    const verdict = make("span", {text: readings.suspects[k] ? " suspect" : readings.judged ? " retained" : "", ...(readings.suspects[k] ? {class: "bad"} : {})});
    tip.replaceChildren(head, verdict, ...rows.map(([a, b]) => make("div", {}, make("span", {text: a}), make("span", {text: b}))));
    const left = at.x + 14 + tip.offsetWidth > plot.width ? at.x - 14 - tip.offsetWidth : at.x + 14;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.min(Math.max(0, at.y - 20), Math.max(0, plot.height - tip.offsetHeight))}px`;
  }
  plot.canvas.addEventListener("pointermove", tell);
  plot.canvas.addEventListener("pointerdown", tell);
  plot.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  for (const select of [across, up, paint, sensor]) if (select) select.addEventListener("change", () => { plot.redraw(); legends(); });
  $("map-tools").hidden = false; $("map-legend").hidden = false;
  legends.map = () => {
    const entries = {
      "suspect or retained": [["retained", colour("--good")], ["suspect (triangle)", colour("--bad")]],
      posterior: [["surely good", ramp("field", 0)], ["even", ramp("field", 0.5)], ["surely bad", ramp("field", 1)]],
      misfit: single ? [[`predicted too low by ${show(largest, 2)}`, ramp("change", 0)], ["right", ramp("change", 0.5)], [`too high by ${show(largest, 2)}`, ramp("change", 1)]]
        : [["misfit 0", ramp("field", 0)], [show(largest, 2), ramp("field", 1)]],
    }[paint.value];
    const said = readings.shown < readings.count ? [make("span", {text: `${readings.shown.toLocaleString("en")} of ${readings.count.toLocaleString("en")} readings are drawn`})] : [];
    key($("map-legend"), entries, false, said);
  };
}
function key(holder, entries, stroke, more = []) {
  holder.replaceChildren(...entries.map(([text, shade, dashed]) => {
    const swatch = make("i", stroke ? {class: dashed ? "stroke dashed" : "stroke"} : {});
    swatch.style[dashed ? "borderTopColor" : "background"] = shade;
    return make("span", {}, swatch, document.createTextNode(text));
  }), ...more);
}
function legends() { for (const draw of [legends.map, legends.loss, legends.score]) if (draw) draw(); }

// -- the table of readings ---------------------------------------------------------------------
function table() {
  if (!readings) return;
  const body = $("suspects").tBodies[0], heads = [...$("suspects").tHead.rows[0].cells];
  const only = $("only-suspects"), find = $("table-find"), more = $("table-more"), count = $("table-count");
  const digits = (values, n = 4) => (k) => show(values[k], n);
  const columns = [
    {value: (k) => readings.row[k], text: (k) => String(readings.row[k])},
    ...(readings.sensor ? [{value: (k) => sensorName(k), text: sensorName, words: true}] : []),
    ...readings.points.map((values) => ({value: (k) => values[k], text: digits(values)})),
    ...readings.quantities.flatMap((q) => [{value: (k) => q.value[k], text: digits(q.value)}, {value: (k) => q.predicted[k], text: digits(q.predicted)}]),
    {value: (k) => Math.abs(readings.misfit[k]), text: digits(readings.misfit, 3)},
    {value: (k) => readings.score[k], text: digits(readings.score, 3)},
    ...(readings.mixture ? [{value: (k) => readings.posterior[k], text: (k) => `${(100 * readings.posterior[k]).toFixed(1)} %`}] : []),
    ...(readings.judged ? [{value: (k) => -readings.suspects[k], text: (k) => (readings.suspects[k] ? "suspect" : "retained"), verdict: true, words: true}] : []),
  ];
  let order = Array.from({length: readings.shown}, (_, k) => k), sorted = null, ascending = false, limit = 25;
  const collate = new Intl.Collator("en", {numeric: true});
  function rows() {
    const wanted = find.value.trim().toLowerCase();
    return order.filter((k) => (!only || !only.checked || readings.suspects[k])
      && (!wanted || String(readings.row[k]) === wanted || sensorName(k).toLowerCase().includes(wanted)));
  }
  function draw() {
    const found = rows(), part = document.createDocumentFragment();
    for (const k of found.slice(0, limit)) {
      const row = make("tr");
      columns.forEach((column) => {
        const cell = make("td", {text: column.text(k)});
        if (!column.words) cell.className = "n";
        if (column.verdict && readings.suspects[k]) cell.className = "bad";
        row.append(cell);
      });
      part.append(row);
    }
    body.replaceChildren(part);
    more.hidden = found.length <= limit;
    count.textContent = `${Math.min(limit, found.length).toLocaleString("en")} of ${found.length.toLocaleString("en")} shown`;
  }
  function sortBy(n) {
    ascending = sorted === n ? !ascending : Boolean(columns[n].words) || n === 0;
    sorted = n;
    const get = columns[n].value, sign = ascending ? 1 : -1;
    order.sort((a, b) => {
      const x = get(a), y = get(b);
      if (typeof x === "string") return sign * collate.compare(x, y) || a - b;
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    });
    heads.forEach((head, k) => (k === n ? head.setAttribute("aria-sort", ascending ? "ascending" : "descending") : head.removeAttribute("aria-sort")));
    draw();
  }
  heads.forEach((head, n) => {
    const button = make("button", {type: "button", text: head.textContent});
    button.addEventListener("click", () => sortBy(n));
    head.replaceChildren(button);
  });
  if (only && !readings.suspect) only.checked = false;
  if (only) only.addEventListener("change", () => { limit = 25; draw(); });
  find.addEventListener("input", () => { limit = 25; draw(); });
  more.addEventListener("click", () => { limit += 100; draw(); });
  $("table-tools").hidden = false;
  draw();
}

// -- histories and scores ----------------------------------------------------------------------
function curves(plot, epochs, series, y, marks) {
  const {px, py} = plot.frame({low: 1, high: Math.max(2, data.history.count), label: "epoch"}, y, {right: 14});
  const pen = plot.pen, a = plot.area;
  pen.save(); pen.beginPath(); pen.rect(a.left, a.top, a.right - a.left, a.bottom - a.top); pen.clip();
  for (const epoch of marks) {
    pen.strokeStyle = colour(epoch === data.history.unlearning ? "--ink" : "--line"); pen.lineWidth = 1;
    pen.setLineDash(epoch === data.history.unlearning ? [4, 3] : []); line(pen, px(epoch), a.top, px(epoch), a.bottom);
  }
  pen.setLineDash([]);
  series.forEach((one) => {
    pen.strokeStyle = one.colour; pen.lineWidth = one.wide ? 2 : 1.3; pen.beginPath();
    let down = false;
    for (let k = 0; k < epochs.length; k++) {
      const v = one.values[k];
      if (!Number.isFinite(v) || (y.log && v <= 0)) { down = false; continue; }
      down ? pen.lineTo(px(epochs[k]), py(v)) : pen.moveTo(px(epochs[k]), py(v)); down = true;
    }
    pen.stroke();
  });
  pen.restore();
}
function history() {
  if (!data.history) { $("loss-plot").hidden = true; return; }
  const epochs = unpack(data.history.epochs), marks = data.history.stages.map((s) => s.epoch).filter((e) => e > 1);
  const terms = data.history.terms.map((t) => ({name: t.name, values: unpack(t.values)}));
  let low = Infinity, high = -Infinity;
  for (const t of terms) for (const v of t.values) if (v > 0 && Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
  if (high > 0) {
    const y = {low: 10 ** Math.floor(Math.log10(low)), high: 10 ** Math.ceil(Math.log10(high) + 1e-9), label: "loss", log: true};
    if (y.low === y.high) y.high *= 10;
    new Plot($("loss-plot"), (plot) => curves(plot, epochs, terms.map((t, k) => ({...t, colour: lineColour(k), wide: t.name === "total"})), y, marks));
    legends.loss = () => key($("loss-legend"), [...terms.map((t, k) => [t.name, lineColour(k)]), ...(data.history.unlearning ? [["unlearning begins", colour("--ink"), true]] : [])], true);
  }
  for (const unknown of data.history.unknowns) {
    const values = unpack(unknown.values), holder = make("div", {class: "plot"}, make("canvas", {role: "img", "aria-label": `${unknown.name} over the epochs`}));
    $("unknown-plots").append(make("figure", {}, make("figcaption", {text: withUnit(unknown)}), holder));
    let a = Infinity, b = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { a = Math.min(a, v); b = Math.max(b, v); }
    const pad = 0.06 * (b - a) || Math.abs(a) * 0.05 || 1;
    new Plot(holder, (plot) => curves(plot, epochs, [{values, colour: colour("--good"), wide: true}], {low: a - pad, high: b + pad, label: ""}, marks));
  }
}
function scores() {
  if (!data.scores || !$("score-plot")) return;
  const {edges, retained, suspect} = data.scores, high = Math.max(...retained.map((v, k) => v + suspect[k]));
  new Plot($("score-plot"), (plot) => {
    const {px, py} = plot.frame({low: 10 ** edges[0], high: 10 ** edges[edges.length - 1], label: "score", log: true}, {low: 0, high: high * 1.05, label: "readings"}, {right: 14});
    for (let k = 0; k < retained.length; k++) {
      const x = px(10 ** edges[k]), w = px(10 ** edges[k + 1]) - x - 1;
      plot.pen.fillStyle = colour("--good"); plot.pen.fillRect(x, py(retained[k]), w, plot.area.bottom - py(retained[k]));
      plot.pen.fillStyle = colour("--bad"); plot.pen.fillRect(x, py(retained[k] + suspect[k]), w, py(retained[k]) - py(retained[k] + suspect[k]));
    }
  });
  legends.score = () => key($("score-legend"), [["retained", colour("--good")], ["suspect", colour("--bad")]], false);
}

fields(); map(); table(); history(); scores(); legends();
document.documentElement.dataset.ready = "yes";
