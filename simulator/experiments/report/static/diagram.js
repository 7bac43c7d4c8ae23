/* The space-time diagram: one row per node, time to the right, a line per message; in a crowd shades instead of lines.
   Everything is in the page. */
"use strict";
(() => {
  const root = document.getElementById("diagram");
  if (!root) return;
  const sources = [...root.querySelectorAll("script.diagram-data")];
  if (!sources.length) return;
  const find = (selector) => root.querySelector(selector);
  const canvas = find("canvas"), pen = canvas.getContext("2d");
  const details = find("#diagram-details"), status = find("#diagram-status");
  const SERVER = -1, EVERYONE = -2, TYPES = { f8: Float64Array, i4: Int32Array, i2: Int16Array, i1: Int8Array };
  const LEFT = 76, STRIP = 44, TOP = 10 + STRIP, BOTTOM = 36, REACH = 9, CROWD = 3000, MARKS = 800, LISTED = 100, CHAIN = 40;
  const FEW = 300, DENSE = 3, FAN = 8, HULLS = 12, DASHES = [[], [7, 3], [2, 2.5], [9, 2.5, 2, 2.5]], LINES = ["solid", "dashed", "dotted", "double"];
  const UNMARKED = ["turn", "choose", "reward", "send", "deliver", "duplicate", "drop", "wait", "resume", "down", "up"];
  let job = null, rows = [], rowOf = new Map(), hidden = new Set(), view = [0, 1], selected = -1, chain = [];
  let size = { width: 0, height: 0 }, colours = {}, waiting = 0, dragging = null;

  // --- reading

  const nodeName = (node) => node === SERVER ? "server" : node === EVERYONE ? "everyone" : node < 0 ? "" : `agent ${node}`;
  const number = (value) => Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(7)).toString();

  async function decode(source) {
    const text = atob(source.data), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const columns = {};
    let offset = 0;
    for (const [name, type] of source.columns) {
      columns[name] = new TYPES[type](buffer, offset, source.count);
      offset += source.count * TYPES[type].BYTES_PER_ELEMENT;
    }
    return Object.assign({}, source, columns, { data: null });
  }

  /* A duplicate that the transport has suppressed is noted at its sender; it is no line of its own. */
  function prepare(events) {
    const code = (word) => events.words.indexOf(word), count = events.count;
    const [turn, choose, send, deliver, duplicate, drop, wait, resume, down, up] =
      ["turn", "choose", "send", "deliver", "duplicate", "drop", "wait", "resume", "down", "up"].map(code);
    const starts = [], ends = [], lost = [], spans = [], marks = [], open = {}, nodes = new Set(), kinds = new Map();
    const unmarked = new Set(UNMARKED.map(code));
    const close = (what, index) => {
      const key = `${what} ${events.node[index]}`;
      if (key in open) spans.push({ what, from: open[key], to: index, node: events.node[index] });
      delete open[key];
    };
    for (let i = 0; i < count; i++) {
      const event = events.event[i], node = events.node[i], cause = events.back[i] ? i - events.back[i] : -1;
      if (node >= SERVER) nodes.add(node);
      if (events.peer[i] >= SERVER) nodes.add(events.peer[i]);
      if (event === send) kinds.set(events.kind[i], (kinds.get(events.kind[i]) || 0) + 1);
      else if ((event === deliver || event === drop || (event === duplicate && node !== events.node[cause])) &&
        cause >= 0 && events.event[cause] === send) {
        starts.push(cause); ends.push(i); lost.push(event === drop ? 1 : 0);
      } else if (event === choose && cause >= 0 && events.event[cause] === turn) {
        spans.push({ what: "turn", from: cause, to: i, node });
      } else if (event === wait || event === down) {
        const what = event === wait ? "wait" : "down";
        if (!(`${what} ${node}` in open)) open[`${what} ${node}`] = i;
      } else if (event === resume) close("wait", i);
      else if (event === up) close("down", i);
      if (!unmarked.has(event)) marks.push(i);
    }
    for (const key in open) {
      const [what, node] = key.split(" ");
      spans.push({ what, from: open[key], to: -1, node: Number(node) });
    }
    const messages = columns(events, starts, ends, lost);
    const kindList = [...kinds.keys()].sort((a, b) => kinds.get(b) - kinds.get(a));
    return Object.assign(events, messages, { spans, marks,
      nodes: [...nodes].sort((a, b) => a - b), kinds: kindList, send, drop, deliver, choose,
      known: count ? events.time[count - 1] : 0,
      end: Math.max(events.end, count ? events.time[count - 1] : 0) || 1,
    });
  }

  /* What is needed of each copy of a message, in order of arrival. A copy to everyone weighs as many as there are. */
  function columns(events, starts, ends, lost) {
    const count = starts.length, at = (list, column) => Float64Array.from(list, (event) => events[column][event]);
    const from = Int32Array.from(starts, (send) => events.node[send]);
    const to = Int32Array.from(ends, (end, m) => lost[m] ? events.peer[end] : events.node[end]);
    const sent = at(starts, "time"), arrived = at(ends, "time"), weight = new Float64Array(count).fill(1);
    let slowest = 0;
    for (let m = 0; m < count; m++) {
      slowest = Math.max(slowest, arrived[m] - sent[m]);
      if (to[m] === EVERYONE) weight[m] = Math.max(1, events.value[ends[m]]);
    }
    return { starts: Int32Array.from(starts), ends: Int32Array.from(ends), lost: Uint8Array.from(lost), from, to, sent, arrived,
      weight, slowest, kindOf: Int32Array.from(starts, (send) => events.kind[send]) };
  }

  const causeOf = (index) => job.back[index] ? index - job.back[index] : -1;
  const kindName = (index) => job.kind[index] < 0 ? "" : job.names[job.kind[index]];

  // --- what is shown

  function chosenNodes(text) {
    const wanted = new Set();
    for (const part of text.toLowerCase().split(/[\s,;]+/)) {
      const range = part.match(/^(\d+)(?:-(\d+))?$/);
      if (part === "server") wanted.add(SERVER);
      if (range) for (let n = +range[1]; n <= +(range[2] || range[1]) && wanted.size < 10000; n++) wanted.add(n);
    }
    return wanted;
  }

  function chooseRows() {
    const wanted = chosenNodes(find("#diagram-nodes").value);
    job.wanted = wanted.size ? wanted : null;
    let shown = job.nodes;
    if (wanted.size) {
      const partners = new Set(wanted);
      for (let m = 0; m < job.starts.length; m++) {
        const from = job.from[m], to = job.to[m];
        if (wanted.has(from) && to >= SERVER) partners.add(to);
        if (wanted.has(to) && from >= SERVER) partners.add(from);
      }
      shown = job.nodes.filter((node) => partners.has(node));
    }
    rows = shown;
    rowOf = new Map(rows.map((node, row) => [node, row]));
    canvas.style.height = `${Math.min(Math.max(rows.length * 22 + TOP + BOTTOM, 260), 700)}px`;
    chooseMessages();
  }

  /* Which messages the filters let through. */
  function chooseMessages() {
    const row = (node) => rowOf.has(node);
    job.visible = new Uint8Array(job.starts.length);
    for (let m = 0; m < job.starts.length; m++) {
      const from = job.from[m], to = job.to[m];
      job.visible[m] = !hidden.has(job.kindOf[m]) && (!job.wanted || job.wanted.has(from) || job.wanted.has(to)) &&
        (row(from) || row(to)) && (to === EVERYONE || (row(from) && row(to))) ? 1 : 0;
    }
    redraw();
  }

  /* The messages in view; copies are in order of arrival, and none takes longer than the slowest. */
  function* inView() {
    let low = 0, high = job.arrived.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (job.arrived[middle] < view[0]) low = middle + 1; else high = middle;
    }
    for (let m = low; m < job.arrived.length && job.arrived[m] <= view[1] + job.slowest; m++)
      if (job.visible[m] && job.sent[m] <= view[1]) yield m;
  }
  const x = (time) => LEFT + (time - view[0]) / (view[1] - view[0]) * (size.width - LEFT - 8);
  const timeAt = (pixel) => view[0] + (pixel - LEFT) / (size.width - LEFT - 8) * (view[1] - view[0]);
  const height = () => (size.height - TOP - BOTTOM) / Math.max(rows.length, 1);
  const y = (node) => TOP + ((rowOf.has(node) ? rowOf.get(node) : 0) + 0.5) * height();

  // --- drawing

  function readColours() {
    const style = getComputedStyle(root), get = (name) => style.getPropertyValue(name).trim();
    colours = { ink: get("--ink"), muted: get("--muted"), rule: get("--rule"), paper: get("--paper"), accent: get("--accent"),
      turn: get("--time-compute"), wait: get("--time-others"), down: get("--time-down") };
    colours.kinds = Array.from({ length: 8 }, (_, i) => get(`--kind-${i}`));
    colours.plain = get("--no-payload");
  }
  const kindColour = (kind) => job.colours[kind] < 0 ? colours.plain : colours.kinds[job.colours[kind]];
  const kindDash = (kind) => Math.max(0, job.kinds.indexOf(kind)) % DASHES.length;

  function redraw() {
    if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; draw(); });
  }

  function draw() {
    if (!job) return;
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    size = { width: box.width, height: box.height };
    const width = Math.round(box.width * ratio), tall = Math.round(box.height * ratio);
    if (canvas.width !== width || canvas.height !== tall) { canvas.width = width; canvas.height = tall; }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    drawRows();
    pen.save();
    pen.beginPath();
    pen.rect(LEFT - 1, 0, size.width - LEFT - 6, size.height - BOTTOM + 4);
    pen.clip();
    const found = [...inView()], crowded = isCrowd(found);
    drawSpans(crowded);
    if (crowded) drawShades(found); else drawLines(found);
    drawStrip(found);
    if (!crowded) drawMarks(); else job.marksShown = [];
    drawUnknown();
    drawChain();
    pen.restore();
    drawAxis();
    canvas.dataset.messages = found.length;
    canvas.dataset.detail = crowded ? "shades" : "lines";
    canvas.dataset.view = view.join(" ");
    canvas.dataset.known = job.known;
    const cut = job.total > job.count ? ` The page holds the first ${number(job.count)} of ${number(job.total)} events.` : "";
    const how = crowded ? " Shades show how many each node sends and receives; zoom in for lines." : "";
    status.textContent = `${number(found.length)} messages from time ${short(view[0])} to ${short(view[1])}.${how}${cut}`;
    if (find("#diagram-table").open) fillTable();
  }

  const short = (value) => Number(value.toPrecision(5)).toString();

  function drawRows() {
    const every = Math.max(1, Math.ceil(13 / height()));
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.lineWidth = 1;
    rows.forEach((node, row) => {
      pen.strokeStyle = colours.rule;
      pen.beginPath();
      pen.moveTo(LEFT, y(node));
      pen.lineTo(size.width - 8, y(node));
      pen.stroke();
      pen.fillStyle = colours.ink;
      if (node === SERVER || row % every === 0) pen.fillText(nodeName(node), LEFT - 8, y(node));
    });
  }

  function drawSpans(crowded) {
    const thick = Math.min(9, Math.max(2, height() * (crowded ? 0.34 : 0.5))), lower = crowded ? height() * 0.3 : 0;
    for (const what of ["turn", "wait", "down"]) {
      pen.fillStyle = colours[what];
      pen.globalAlpha = what === "down" ? 0.9 : 0.4;
      const depth = what === "wait" ? thick * 0.5 : thick;
      for (const span of job.spans) {
        if (span.what !== what || !rowOf.has(span.node)) continue;
        const from = job.time[span.from], to = span.to < 0 ? job.end : job.time[span.to];
        if (to < view[0] || from > view[1]) continue;
        const left = x(Math.max(from, view[0]));
        pen.fillRect(left, y(span.node) + lower - depth / 2, Math.max(x(Math.min(to, view[1])) - left, 0.5), depth);
      }
    }
    pen.globalAlpha = 1;
  }

  /* Whether lines would cover each other: they are too many, or begin in too few columns of pixels. */
  function isCrowd(found) {
    if (found.length > CROWD) return true;
    const sends = new Set(), places = new Set();
    for (const m of found) { sends.add(job.starts[m]); places.add(column(job.sent[m])); }
    return sends.size > FEW && sends.size > DENSE * places.size;
  }

  const column = (time) => Math.floor(x(time) - LEFT);
  const columnCount = () => Math.max(1, Math.ceil(size.width - LEFT - 8));

  /* In a crowd: the darker a lane in a column of pixels, the more messages its node sends and receives there. */
  function drawShades(found) {
    const width = columnCount(), counts = new Float64Array(rows.length * width);
    let most = 1;
    const count = (node, time, weight) => {
      const row = rowOf.get(node), at = column(time);
      if (row === undefined || at < 0 || at >= width) return;
      most = Math.max(most, counts[row * width + at] += weight);
    };
    for (const m of found) {
      count(job.from[m], job.sent[m], job.weight[m]);
      if (job.to[m] === EVERYONE) for (const node of rows) { if (node !== job.from[m]) count(node, job.arrived[m], 1); }
      else if (!job.lost[m]) count(job.to[m], job.arrived[m], 1);
    }
    const tall = Math.max(1.5, height() * 0.55);
    pen.fillStyle = colours.ink;
    for (let row = 0; row < rows.length; row++) {
      const top = y(rows[row]) - tall * 0.8;
      for (let at = 0; at < width; at++) {
        const number = counts[row * width + at];
        if (!number) continue;
        pen.globalAlpha = 0.12 + 0.75 * Math.log1p(number) / Math.log1p(most);
        pen.fillRect(LEFT + at, top, 1, tall);
      }
    }
    pen.globalAlpha = 1;
  }

  /* Above the lanes: how many messages are sent in each column of pixels, by kind. */
  function drawStrip(found) {
    const width = columnCount(), total = new Float64Array(width), byKind = new Map();
    for (const m of found) {
      const at = column(job.sent[m]);
      if (at < 0 || at >= width) continue;
      const kind = job.kindOf[m];
      if (!byKind.has(kind)) byKind.set(kind, new Float64Array(width));
      byKind.get(kind)[at] += job.weight[m];
      total[at] += job.weight[m];
    }
    const most = total.reduce((a, b) => Math.max(a, b), 0), base = TOP - 6, tall = STRIP - 8, done = new Float64Array(width);
    for (const kind of job.kinds) {
      if (!byKind.has(kind)) continue;
      pen.fillStyle = kindColour(kind);
      byKind.get(kind).forEach((number, at) => {
        const high = number / most * tall;
        if (high) pen.fillRect(LEFT + at, base - done[at] - high, 1, high);
        done[at] += high;
      });
    }
    job.most = most;
  }

  /* The part of the run whose events are not in the page. */
  function drawUnknown() {
    if (job.total <= job.count || view[1] <= job.known) return;
    const left = Math.max(LEFT, x(job.known)), right = size.width - 8, bottom = size.height - BOTTOM;
    pen.strokeStyle = colours.rule;
    pen.lineWidth = 1;
    pen.save();
    pen.beginPath();
    pen.rect(left, TOP - 2, right - left, bottom - TOP + 2);
    pen.fillStyle = colours.paper;
    pen.fill();
    pen.clip();
    pen.beginPath();
    for (let at = left - bottom; at < right; at += 8) { pen.moveTo(at, bottom); pen.lineTo(at + bottom, 0); }
    pen.stroke();
    pen.fillStyle = colours.ink;
    pen.textAlign = "left";
    pen.textBaseline = "top";
    const text = `After time ${short(job.known)}: not in this page`;
    const wide = pen.measureText(text).width;
    pen.clearRect(left + 4, TOP + 4, wide + 12, 20);
    pen.fillText(text, left + 10, TOP + 8);
    pen.restore();
  }

  /* One line per copy; the copies of a broadcast are a fan. */
  function drawLines(found) {
    const sends = new Map();
    for (const m of found) {
      if (!sends.has(job.starts[m])) sends.set(job.starts[m], []);
      sends.get(job.starts[m]).push(m);
    }
    const isFan = (copies) => copies.length >= FAN || job.to[copies[0]] === EVERYONE;
    const fans = [...sends.values()].filter(isFan).length, faint = Math.min(0.5, Math.max(0.07, 200 / found.length));
    pen.lineWidth = found.length > 500 ? 0.8 : 1.2;
    for (const copies of sends.values()) {
      const kind = job.kindOf[copies[0]], fan = isFan(copies);
      pen.strokeStyle = pen.fillStyle = kindColour(kind);
      pen.setLineDash(DASHES[kindDash(kind)]);
      if (fan && fans <= HULLS) drawHull(copies);
      pen.globalAlpha = fan ? faint : 0.85;
      pen.beginPath();
      for (const m of copies) line(m);
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 1;
      if (!fan || !rowOf.has(job.from[copies[0]])) continue;
      pen.beginPath();
      pen.arc(x(job.sent[copies[0]]), y(job.from[copies[0]]), 2.5, 0, 7);
      pen.fill();
    }
  }

  function drawHull(copies) {
    if (!rowOf.has(job.from[copies[0]])) return;
    const points = copies.filter((m) => job.to[m] !== EVERYONE && !job.lost[m]).map((m) => [x(job.arrived[m]), y(job.to[m])]);
    points.sort((a, b) => a[1] - b[1]);
    pen.globalAlpha = 0.1;
    pen.beginPath();
    pen.moveTo(x(job.sent[copies[0]]), y(job.from[copies[0]]));
    for (const point of points) pen.lineTo(...point);
    pen.closePath();
    pen.fill();
  }

  function line(m) {
    const from = job.from[m], to = job.to[m], x0 = x(job.sent[m]), x1 = x(job.arrived[m]);
    if (to === EVERYONE) return toEveryone(from, x0, x1);
    const share = job.lost[m] ? 0.5 : 1, end = job.lost[m] ? x0 + 6 : x1;
    const y1 = y(from) + (y(to) - y(from)) * share;
    pen.moveTo(x0, y(from));
    pen.lineTo(end, y1);
    if (job.lost[m]) {
      pen.moveTo(end - 4, y1 - 4); pen.lineTo(end + 4, y1 + 4);
      pen.moveTo(end - 4, y1 + 4); pen.lineTo(end + 4, y1 - 4);
    }
  }

  /* All copies arrive at once: a fan to every lane, or, where it takes no time, a line with a tick at every lane. */
  function toEveryone(from, x0, x1) {
    for (const node of rows) {
      if (node === from) continue;
      const origin = rowOf.has(from) ? from : node;
      pen.moveTo(x0, y(origin));
      pen.lineTo(x1, y(node));
      if (x1 - x0 < 2) { pen.moveTo(x1 - 2, y(node)); pen.lineTo(x1 + 3, y(node)); }
    }
  }

  const markShown = (i) => job.time[i] >= view[0] && job.time[i] <= view[1] && rowOf.has(job.node[i]);

  function drawMarks() {
    const shown = job.marks.filter(markShown);
    job.marksShown = shown.length <= MARKS ? shown : [];
    pen.fillStyle = colours.ink;
    const radius = Math.min(4, Math.max(1.5, height() * 0.22));
    for (const i of job.marksShown) {
      const at = x(job.time[i]), level = y(job.node[i]);
      pen.beginPath();
      if (job.words[job.event[i]] === "trigger") {
        pen.moveTo(at, level - radius - 1); pen.lineTo(at + radius, level + radius); pen.lineTo(at - radius, level + radius);
      } else pen.arc(at, level, radius * 0.75, 0, 7);
      pen.fill();
    }
  }

  function drawChain() {
    if (selected < 0) return;
    pen.strokeStyle = pen.fillStyle = colours.accent;
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    pen.beginPath();
    chain.forEach((event, i) => {
      const cause = chain[i + 1];
      if (cause === undefined) return;
      const from = rowOf.has(job.node[cause]) ? job.node[cause] : job.node[event];
      const to = rowOf.has(job.node[event]) ? job.node[event] : from;
      const lost = job.event[event] === job.drop;
      if (!rowOf.has(from)) return;
      pen.moveTo(x(job.time[cause]), y(from));
      pen.lineTo(x(job.time[event]), y(lost ? from : to));
    });
    pen.stroke();
    const node = rowOf.has(job.node[selected]) ? job.node[selected] : job.peer[selected];
    if (!rowOf.has(node)) return;
    pen.beginPath();
    pen.arc(x(job.time[selected]), y(node), 6, 0, 7);
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = colours.paper;
    pen.stroke();
  }

  function drawAxis() {
    if (job.most) {
      pen.fillStyle = colours.muted;
      pen.textAlign = "right";
      pen.textBaseline = "top";
      pen.fillText(`≤ ${number(job.most)}`, LEFT - 8, 6);
      pen.textBaseline = "bottom";
      pen.fillText("sent", LEFT - 8, TOP - 4);
    }
    const span = view[1] - view[0], rough = span / Math.max(2, (size.width - LEFT) / 110);
    const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((n) => n * power >= rough) * power;
    const base = size.height - BOTTOM + 4;
    pen.strokeStyle = colours.muted;
    pen.fillStyle = colours.ink;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(LEFT, base);
    pen.lineTo(size.width - 8, base);
    for (let k = Math.ceil(view[0] / step); k * step <= view[1]; k++) {
      const at = x(k * step);
      pen.moveTo(at, base);
      pen.lineTo(at, base + 4);
      pen.fillText(Number((k * step).toPrecision(12)).toString(), at, base + 6);
    }
    pen.stroke();
    pen.fillStyle = colours.muted;
    pen.textAlign = "right";
    pen.fillText("simulated time", size.width - 8, base + 19);
  }

  // --- moving

  function show(from, to) {
    const least = job.end * 1e-9, span = Math.min(Math.max(to - from, least), job.end);
    const start = Math.min(Math.max(from, 0), job.end - span);
    view = [start, start + span];
    redraw();
  }
  /* Zooming keeps the chosen event where it is, if it is in view, else the middle. */
  function centre() {
    const time = selected < 0 ? -1 : job.time[selected];
    return time >= view[0] && time <= view[1] ? time : (view[0] + view[1]) / 2;
  }
  const zoom = (factor, around = centre()) =>
    show(around - (around - view[0]) * factor, around + (view[1] - around) * factor);
  const pan = (share) => show(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
  const reset = () => show(0, job.end);

  // --- choosing

  function nearest(px, py) {
    let best = -1, least = REACH;
    const consider = (event, distance) => { if (distance < least) { least = distance; best = event; } };
    for (const i of job.marksShown || []) consider(i, Math.hypot(px - x(job.time[i]), py - y(job.node[i])) - 3);
    for (const m of inView()) {
      const from = job.from[m], to = job.to[m], x0 = x(job.sent[m]), x1 = x(job.arrived[m]);
      const y0 = y(rowOf.has(from) ? from : to), y1 = rowOf.has(to) ? y(to) : y0;
      consider(job.ends[m], fromSegment(px, py, x0, y0, job.lost[m] ? x0 + 6 : x1, job.lost[m] ? (y0 + y1) / 2 : y1));
    }
    for (const span of job.spans) {
      if (!rowOf.has(span.node)) continue;
      const end = span.to < 0 ? job.end : job.time[span.to], level = y(span.node);
      if (job.time[span.from] <= view[1] && end >= view[0])
        consider(span.to < 0 ? span.from : span.to, fromSegment(px, py, x(job.time[span.from]), level, x(end), level) + 2);
    }
    return best;
  }

  function fromSegment(px, py, x0, y0, x1, y1) {
    const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
    const share = length ? Math.min(1, Math.max(0, ((px - x0) * dx + (py - y0) * dy) / length)) : 0;
    return Math.hypot(px - x0 - share * dx, py - y0 - share * dy);
  }

  function select(event) {
    selected = event;
    chain = [];
    for (let e = event; e >= 0; e = causeOf(e)) chain.push(e);
    describe();
    redraw();
  }

  function bringIntoView(event) {
    const time = job.time[event], span = view[1] - view[0];
    if (time < view[0] || time > view[1]) show(time - span / 2, time + span / 2);
  }

  /* The next or previous message in view, by the time of its arrival; the ends are in order of time. */
  function step(way) {
    const shown = Array.from(inView(), (m) => job.ends[m]);
    if (!shown.length) return;
    const next = way > 0 ? shown.find((e) => e > selected) : shown.filter((e) => selected < 0 || e < selected).pop();
    if (next !== undefined) select(next);
  }

  // --- words

  const VALUES = { choose: "arm", reward: "reward", send: "receivers", deliver: "copy", drop: "copy", retransmit: "copy",
    duplicate: "copy", turn: "turn of the agent" };

  function facts(i) {
    const word = job.words[job.event[i]], list = [["simulated time", number(job.time[i])], ["at", nodeName(job.node[i])]];
    const cause = causeOf(i), backwards = cause >= 0 && kindName(i) && job.event[cause] === job.send && job.node[cause] !== job.node[i];
    if (nodeName(job.peer[i])) list.push([backwards ? "from" : "to", nodeName(job.peer[i])]);
    if (word === "timer") list.push(["timer", kindName(i)]);
    else if (kindName(i)) list.push(["message", `${kindName(i)} (number ${job.message[i]})`], ["scalars of a copy", number(job.scalars[i])]);
    if (backwards) list.push(["on the way", number(job.time[i] - job.time[cause])]);
    if (job.hop[i] > 0) list.push(["hop", job.hop[i]]);
    if (job.round[i] >= 0) list.push(["round", job.round[i]]);
    if (job.version[i] >= 0) list.push(["model version", job.version[i]]);
    if (word in VALUES) list.push([VALUES[word], number(job.value[i])]);
    if (job.reason[i] >= 0) list.push(["reason", job.names[job.reason[i]]]);
    return list;
  }

  const sentence = (i) => [job.words[job.event[i]], "at", nodeName(job.node[i]), kindName(i) && `(${kindName(i)})`].filter(Boolean).join(" ");

  function make(tag, text, ...children) {
    const element = document.createElement(tag);
    if (text !== null) element.textContent = text;
    element.append(...children);
    return element;
  }

  function describe() {
    details.replaceChildren();
    if (selected < 0) {
      details.append(make("p", "Choose an event in the diagram: its details and what led to it appear here."));
      return;
    }
    const list = make("dl", null);
    for (const [name, value] of facts(selected)) list.append(make("div", null, make("dt", name), make("dd", String(value))));
    details.append(make("h3", `Event ${selected}: ${sentence(selected)}`), list);
    if (chain.length === 1) {
      details.append(make("p", "Nothing led to it: it was due by the schedule."));
      return;
    }
    const causes = make("ol", null);
    for (const event of chain.slice(1, CHAIN + 1)) {
      const button = make("button", `${event}: ${sentence(event)}, time ${short(job.time[event])}`);
      button.type = "button";
      button.addEventListener("click", () => { select(event); bringIntoView(event); details.focus(); });
      causes.append(make("li", null, button));
    }
    details.append(make("h4", "Because of"), causes);
    if (chain.length > CHAIN + 1) details.append(make("p", `… and ${chain.length - CHAIN - 1} earlier events.`));
  }

  function fillTable() {
    const body = find("#diagram-table tbody"), lines = [];
    for (const m of inView()) {
      if (lines.length >= LISTED) break;
      const send = job.starts[m], cells = [short(job.sent[m]), job.lost[m] ? "lost" : short(job.arrived[m]),
        nodeName(job.from[m]), nodeName(job.to[m]), kindName(send), number(job.scalars[send])];
      const button = make("button", String(job.ends[m])), event = job.ends[m];
      button.type = "button";
      button.addEventListener("click", () => select(event));
      lines.push(make("tr", null, make("td", null, button), ...cells.map((cell) => make("td", cell))));
    }
    body.replaceChildren(...lines);
  }

  // --- the outside

  function fillKinds() {
    const box = find("#diagram-kinds");
    box.querySelectorAll("label").forEach((label) => label.remove());
    box.hidden = !job.kinds.length;
    for (const kind of job.kinds) {
      const tick = document.createElement("input"), swatch = make("span", "");
      tick.type = "checkbox";
      tick.checked = !hidden.has(kind);
      tick.addEventListener("change", () => { tick.checked ? hidden.delete(kind) : hidden.add(kind); chooseMessages(); });
      swatch.className = "swatch line";
      swatch.style.borderTop = `4px ${LINES[kindDash(kind)]} ${kindColour(kind)}`;
      box.append(make("label", null, tick, swatch, job.names[kind]));
    }
  }

  const loaded = new Map();
  async function load(index) {
    if (!loaded.has(index)) {
      loaded.clear(); // a long run takes much memory
      loaded.set(index, prepare(await decode(JSON.parse(sources[index].textContent))));
    }
    job = loaded.get(index);
    hidden = new Set();
    selected = -1;
    chain = [];
    view = [0, job.end];
    readColours();
    fillKinds();
    chooseRows();
    describe();
    draw();
    root.dataset.ready = job.label;
  }

  const choice = find("#diagram-label");
  choice.addEventListener("change", () => load(Number(choice.value)));
  find("#diagram-nodes").addEventListener("input", chooseRows);
  find("#diagram-table").addEventListener("toggle", redraw);
  const actions = { in: () => zoom(0.5), out: () => zoom(2), earlier: () => pan(-0.25), later: () => pan(0.25), all: reset,
    previous: () => step(-1), next: () => step(1) };
  root.querySelectorAll("button[data-do]").forEach((button) => button.addEventListener("click", actions[button.dataset.do]));

  canvas.addEventListener("keydown", (event) => {
    const keys = { ArrowLeft: actions.earlier, ArrowRight: actions.later, "+": actions.in, "=": actions.in, "-": actions.out,
      Home: reset, ArrowDown: actions.next, ArrowUp: actions.previous, Escape: () => select(-1),
      c: () => { if (chain.length > 1) { select(chain[1]); bringIntoView(selected); } },
      Enter: () => details.focus() };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return; // else the page scrolls
    event.preventDefault();
    zoom(Math.exp(Math.sign(event.deltaY) * 0.25), timeAt(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    dragging = { x: event.offsetX, view: view.slice(), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragging) {
      const few = job && Number(canvas.dataset.messages) < CROWD;
      canvas.style.cursor = few && nearest(event.offsetX, event.offsetY) >= 0 ? "pointer" : "grab";
      return;
    }
    const shift = (event.offsetX - dragging.x) / (size.width - LEFT - 8) * (dragging.view[1] - dragging.view[0]);
    dragging.moved = dragging.moved || Math.abs(event.offsetX - dragging.x) > 4;
    if (dragging.moved) show(dragging.view[0] - shift, dragging.view[1] - shift);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (dragging && !dragging.moved) select(nearest(event.offsetX, event.offsetY));
    dragging = null;
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(event.offsetX)));
  new ResizeObserver(redraw).observe(canvas);

  document.querySelectorAll("button.show-round").forEach((button) => {
    const index = sources.findIndex((one) => one.dataset.label === button.dataset.label);
    button.hidden = index < 0;
    button.addEventListener("click", () => showRound(button, index));
  });
  async function showRound(button, index) {
    choice.value = String(index);
    await load(index);
    const from = Number(button.dataset.start), to = Number(button.dataset.end), margin = 0.1 * (to - from);
    show(from - margin, to + margin);
    if (Number(button.dataset.event) < job.count) select(Number(button.dataset.event));
    canvas.scrollIntoView({ block: "center" });
    canvas.focus({ preventScroll: true });
  }

  const recolour = () => { if (job) { readColours(); fillKinds(); draw(); } };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); recolour(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); recolour(); });
  load(Number(choice.value));
})();
