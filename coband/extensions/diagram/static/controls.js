/* Buttons, keys, pointer, colours of the page. */
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
  if (index !== Number(choice.value)) return; // another one was chosen meanwhile
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
