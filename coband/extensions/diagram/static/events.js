/* The space-time diagram: one row per node, time to the right, a line per message; in a crowd shades instead of lines.
   Everything is in the page, which puts the files of this folder into one function. */
const root = document.getElementById("diagram");
if (!root) return;
const sources = [...root.querySelectorAll("script.diagram-data")];
if (!sources.length) return;
const find = (selector) => root.querySelector(selector);
const canvas = find("canvas"), pen = canvas.getContext("2d");
const details = find("#diagram-details"), status = find("#diagram-status");
const SERVER = -1, EVERYONE = -2, TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, i1: Int8Array };
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
  let ticks = 0;
  columns.time = Float64Array.from(columns.ticks, (step) => (ticks += step) * source.tick);
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
    over: events.end,
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
